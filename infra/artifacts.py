"""The private bucket with code and template for CloudFormation. Object names follow from the content."""

import hashlib
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError


def ensure_bucket(s3: Any, account: str, region: str) -> str:
    """The artifact bucket of this account and region; a missing one is created, private and encrypted."""
    bucket = f"sluice-artifacts-{account}-{region}"
    try:
        # ExpectedBucketOwner: bucket names are global, and code must never come from another account's bucket.
        s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=account)
        return bucket
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
            raise
    # us-east-1 is not accepted as a LocationConstraint.
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=bucket, **where)
    s3.put_public_access_block(
        Bucket=bucket,
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": True,
            "IgnorePublicAcls": True,
            "BlockPublicPolicy": True,
            "RestrictPublicBuckets": True,
        },
    )
    return bucket


def upload(s3: Any, bucket: str, stack: str, content: bytes, suffix: str) -> str:
    """Store `content` under a key made of its hash, unless it exists; return the key."""
    key = f"{stack}/{hashlib.sha256(content).hexdigest()}{suffix}"
    try:
        s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey"):
            raise
        s3.put_object(Bucket=bucket, Key=key, Body=content)
    return key


def code_of(out: Path) -> bytes:
    """The packaged code, which is next to the template in `out`."""
    return (out / "deployment.zip").read_bytes()
