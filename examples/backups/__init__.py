"""A thousand backups due in one minute, a policy that stretches them, and a consumer behind a queue."""
