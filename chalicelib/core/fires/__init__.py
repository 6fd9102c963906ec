"""Timers: which fires are due and prepared, catch-up, spread, and when a schedule has fired its last."""
