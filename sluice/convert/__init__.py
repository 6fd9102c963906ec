"""Schedules of other schedulers as app documents (L20): one reader for each, and what they share.

A reader takes text and fills a `Draft`: the app document, and a finding for each thing that the document does not carry
over. Readers execute nothing, call nothing, and read no clock.
"""
