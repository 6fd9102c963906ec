"""The only importers of boto3: tables, queues, targets and payloads behind the Protocols of `ports`."""
