"""The only importers of boto3: tables, queues, buckets and targets behind the Protocols of `ports`."""
