"""Fires: which are due and prepared, catch-up, spread, and the end of a schedule's life."""
