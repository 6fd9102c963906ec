"""Store, read and delete definitions, and check their references."""
