"""What outlives a restore of the tables: the job runs that EMR lists, and the objects in buckets (O4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.core.instants import SECOND, Instant
from sluice.operations.ports import Begun, Changed


def started_since(
    emr: EmrServerlessTarget, applications: Sequence[str], instant: Instant, on_missing: Callable[[str], None]
) -> Iterator[Begun]:
    """The job runs of these applications, newest first in each. Calls ``on_missing`` with the id of each application
    that does not exist."""
    for application in applications:
        try:
            for page in emr.pages(application, instant):
                for found in page["jobRuns"]:
                    yield Begun(
                        f"{application}/{found['id']}", str(found.get("name") or ""), _instant(found["createdAt"])
                    )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            on_missing(application)


def changed(client: Any, bucket: str, prefix: str, since: Instant) -> Iterator[Changed]:
    """The objects under a prefix that were put at an instant or later."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for entry in (entry for page in pages for entry in page.get("Contents", ())):
        at = _instant(entry["LastModified"])
        if at + SECOND > since:  # S3 lists whole seconds
            yield Changed(entry["Key"], at, entry["Size"], entry["ETag"].strip('"'))


def _instant(at: datetime) -> Instant:
    return round(at.timestamp() * 1000)
