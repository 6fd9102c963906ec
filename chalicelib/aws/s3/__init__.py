"""S3: the lake, run contexts and payloads, notifications of objects, files of history."""
