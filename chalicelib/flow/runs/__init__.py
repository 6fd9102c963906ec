"""Launch a run, follow it, complete it; what users and workers do to runs."""
