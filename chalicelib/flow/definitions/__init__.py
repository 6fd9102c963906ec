"""Store, read and delete definitions; check what they refer to."""
