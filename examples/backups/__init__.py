"""A thousand backups that are due in one minute, a policy that limits their rate, and the consumer of a queue."""
