"""Mend tables that were restored to different instants (O4)."""
