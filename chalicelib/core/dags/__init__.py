"""DAGs: compiled into schedules, the rounds of their runs, and the status of each node in a run."""
