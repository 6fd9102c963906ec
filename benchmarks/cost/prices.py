"""List prices of us-east-1, on demand, without free tiers. In dollars; https://aws.amazon.com/<service>/pricing/.

Not included: logs ($0.50 per GB), storage, the S3 requests of data producers and of jobs, and EMR's bill for the runs.
Nor is the long polling of idle queues by Lambda: five pollers, 20 s each, about $0.26 per queue and month. EMR
Serverless does not charge for API calls, and EventBridge not for events of AWS services.
"""

from __future__ import annotations

from collections.abc import Mapping

MILLION = 1_000_000
WRITE_UNIT = 0.625 / MILLION
READ_UNIT = 0.125 / MILLION
LAMBDA_REQUEST = 0.20 / MILLION
LAMBDA_GB_SECOND = 0.0000133334  # arm64
SQS_REQUEST = 0.40 / MILLION
S3_PUT = 5.0 / MILLION
S3_GET = 0.40 / MILLION

# The assumed duration of a Lambda in ms: a fixed part for the runtime and Sluice's code, and for each AWS call its
# usual duration inside a region. The time that a Lambda waits until a hint is due is measured.
FIXED_MS = 15.0
CALL_MS = {"dynamodb": 6.0, "sqs": 12.0, "s3": 25.0, "emr-serverless": 150.0}


def usd(calls: Mapping[str, float], write_units: float, read_units: float, gb_seconds: float) -> dict[str, float]:
    """Dollars by service, for calls named `<service>:<Operation>`."""
    requests = sum(count for name, count in calls.items() if name.startswith("lambda:"))
    messages = sum(count for name, count in calls.items() if name.startswith("sqs:"))
    return {
        "dynamodb_writes": write_units * WRITE_UNIT,
        "dynamodb_reads": read_units * READ_UNIT,
        "lambda_requests": requests * LAMBDA_REQUEST,
        "lambda_duration": gb_seconds * LAMBDA_GB_SECOND,
        "sqs": messages * SQS_REQUEST,
        "s3": calls.get("s3:PutObject", 0) * S3_PUT + calls.get("s3:GetObject", 0) * S3_GET,
    }
