"""Triggers: leaves, each of which waits for one kind of event or instant, and the tree that combines them."""
