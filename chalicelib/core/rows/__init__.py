"""The stored rows, one class for each kind. `aws/tables/keys.py` has the key of each kind."""
