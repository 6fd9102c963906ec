"""A bucket outside the stack, as another team might own it: for datasets outside the lake.

It sends its notifications to EventBridge, and the local stack watches it.
"""

from typing import Any

from botocore.exceptions import ClientError

BUCKET = "sluice-local-landing"


def ensure(s3: Any) -> None:
    """Create the bucket and enable its EventBridge notifications, the two duties of its owner."""
    try:
        s3.head_bucket(Bucket=BUCKET)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
            raise
        s3.create_bucket(Bucket=BUCKET)
    s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={"EventBridgeConfiguration": {}})
