"""Data that is too large to stand with its schedule or message goes to S3 before it is referred to (L13)."""

from __future__ import annotations

from typing import TypeVar

from chalicelib.core.definitions import data
from chalicelib.core.definitions.data import Carried
from chalicelib.ports import Ports

C = TypeVar("C", bound=Carried)


def stored(ports: Ports, owner: str, carried: C, bucket: str | None = None) -> C:
    """The document as it is stored: large data by reference. Nothing is written; ``bucket`` is the app's, if known."""
    if not data.is_large(carried):
        return carried
    return carried.model_copy(update=dict(data.by_reference(carried, _uri(ports, owner, carried, bucket))))


def keep(ports: Ports, owner: str, carried: Carried, bucket: str | None = None) -> None:
    """Write large data where `settled` says. Repeatable: the same data is the same object."""
    if data.is_large(carried):
        content = data.content_of(carried) or b""
        ports.payloads.put_data(_uri(ports, owner, carried, bucket), content, data.type_of(carried))


def bucket_of(ports: Ports, app: str, carried: Carried) -> str | None:
    """The bucket that an app chose for its large data; None: the control bucket, or there is none to keep."""
    row = ports.catalog.definition("app", app) if data.is_large(carried) else None
    return row.document.get("data_bucket") if row else None


def _uri(ports: Ports, owner: str, carried: Carried, bucket: str | None) -> str:
    return f"s3://{bucket or ports.settings.control_bucket}/{data.key_of(owner, carried)}"
