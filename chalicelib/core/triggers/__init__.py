"""What starts a job: leaves, each waiting for one kind of event, and the tree that combines them."""
