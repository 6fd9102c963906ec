"""The adapters of targets: EMR Serverless, SQS, SNS, HTTP, Lambda, EventBridge buses, pull workers, starts of DAGs."""
