"""Emit: timers that come due become rows of fires, hinted for their instant."""
