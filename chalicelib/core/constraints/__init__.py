"""What must hold before a job may launch: the documents of constraints, and the answers from outside."""
