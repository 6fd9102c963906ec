"""S3: reads of the lake, run contexts and payloads, object notifications, history files."""
