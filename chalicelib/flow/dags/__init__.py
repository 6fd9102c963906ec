"""What users do to DAGs, and the runs of DAGs."""
