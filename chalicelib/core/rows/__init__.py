"""What is stored: one class for each kind of row. `aws/tables/keys.py` says under which key."""
