"""List prices of us-east-1, on demand, without free tiers. In dollars; https://aws.amazon.com/<service>/pricing/.

`usd` prices the calls of a run. What an installation costs beside them (storage, logs, alarms, polling) is in
`bill.py`. Neither includes the S3 requests of data producers and of jobs, and EMR's bill for the runs. EMR Serverless
does not charge for API calls, and EventBridge not for events of AWS services.
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
# A GB and month. Point-in-time recovery is charged for a table and its local indexes, without the global ones.
TABLE_GB, RECOVERY_GB, S3_GB = 0.25, 0.20, 0.023
LOG_GB, LOG_GB_MONTH = 0.50, 0.03  # written, and kept for a month
ALARM_METRIC, METRIC, DASHBOARD = 0.10, 0.30, 3.00  # a month
TRACE = 5.0 / MILLION
# An event poller unit for an hour; a provisioned poller of SQS is one. "Provisioned Mode for Event Source Mapping" of
# https://aws.amazon.com/lambda/pricing/, its second example; billed by the second, a minute at least.
POLLER_HOUR = 0.00925

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
