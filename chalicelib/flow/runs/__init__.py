"""Launch a run, follow it and complete it, and carry out what users and workers do to runs."""
