"""The documents that users write: schedules, workflows, datasets, DAGs, messages, apps."""
