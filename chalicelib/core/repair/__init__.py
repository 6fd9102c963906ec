"""Decisions of a repair, after tables were restored to different instants (O4)."""
