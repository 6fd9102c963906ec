"""The stored rows, one class for each kind. `kinds.py` has the table of all kinds."""
