"""Jobs: gather events, check whether a job may launch and say why not, claim it."""
