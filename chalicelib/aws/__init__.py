"""The adapters for AWS: tables, queues, buckets and targets behind the Protocols of `ports`. Only they import boto3."""
