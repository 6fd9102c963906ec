"""The adapters of targets: EMR Serverless, SQS, SNS, HTTP, Lambda, event buses, pull workers."""
