"""DAGs: compiled into schedules, the rounds of their runs, and the status of a run node by node."""
