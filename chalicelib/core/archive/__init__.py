"""Exports of an installation: what belongs to a namespace, what is left out, and the manifest of the files."""
