"""Converts the schedules of other schedulers into app documents (L20): one reader for each scheduler, and shared code.

A reader takes a text and fills a `Draft`. A draft holds the app document and a finding for each part that the document
does not carry over. Readers execute no code of the file, call no service, and read no clock.
"""
