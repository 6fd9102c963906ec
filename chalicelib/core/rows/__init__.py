"""The stored rows, one class for each kind. `aws/tables/keys.py` says under which key each one is."""
