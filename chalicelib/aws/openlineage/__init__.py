"""Where events of OpenLineage are sent: an endpoint, a queue, or files in S3 (H6)."""
