"""The adapters of targets: EMR Serverless, Step Functions, SQS, SNS, HTTP, Lambda, EventBridge buses, pull workers, and
starts of DAGs."""
