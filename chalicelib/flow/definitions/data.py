"""Keep large data of schedules and messages in S3, and refer to it there (L13)."""

from __future__ import annotations

from typing import TypeVar

from chalicelib.core.definitions import data
from chalicelib.core.definitions.data import Carried
from chalicelib.core.rows.definition import Definition
from chalicelib.ports import Ports

C = TypeVar("C", bound=Carried)


def stored(ports: Ports, owner: str, carried: C, bucket: str | None = None) -> C:
    """The document as it is stored, with large data by reference. Writes nothing. ``bucket`` is the app's, if known."""
    if not data.is_large(carried):
        return carried
    return carried.model_copy(update=dict(data.by_reference(carried, _uri(ports, owner, carried, bucket))))


def keep(ports: Ports, owner: str, carried: Carried, bucket: str | None = None) -> None:
    """Write large data to the address that `stored` refers to. Idempotent: the same data has the same key."""
    if data.is_large(carried):
        content = data.content_of(carried) or b""
        ports.payloads.put_data(_uri(ports, owner, carried, bucket), content, data.type_of(carried))


def bucket_of(ports: Ports, app: str, carried: Carried) -> str | None:
    """The bucket that an app has for large data. None for the control bucket, and if ``carried`` is not large."""
    row = ports.rows.get(Definition, "app", app) if data.is_large(carried) else None
    return row.document.get("data_bucket") if row else None


def _uri(ports: Ports, owner: str, carried: Carried, bucket: str | None) -> str:
    return f"s3://{bucket or ports.settings.control_bucket}/{data.key_of(owner, carried)}"
