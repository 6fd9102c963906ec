"""What users do to DAGs and to their runs."""
