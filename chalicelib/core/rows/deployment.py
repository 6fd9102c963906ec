"""The row of a deployment of an uploaded document, which Sluice works off after the answer to its request (L8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow

DeploymentState = Literal["RUNNING", "DONE", "FAILED"]


@dataclass(frozen=True, slots=True)
class Deployment(StoredRow):
    """A deployment of the document ``id`` that was uploaded for ``app`` (a full name). ``digest`` is that of its bytes:
    another document under the same id is not deployed.

    ``counts`` are the numbers of parts that it creates, replaces, keeps, and so on. ``author`` are the fields of
    the signer for the audit records; empty if nothing checks who signs. Until ``busy_until`` an invocation works on it.
    At ``wake_at`` Sluice goes on with it. ``error`` is that of a failed one, as the API answers it.

    ``edition`` is its mark in the row of the app: it goes on while that is so. ``superseded_by`` says who has taken
    over from a failed one. ``seen`` names what it saw at its acceptance. ``left`` are the first parts that it left
    alone, because they were changed since, as ``kind name``. ``tries`` counts the slices since the last one that
    succeeded. ``restart``: each schedule that it replaces drops what has gathered and what waits.
    """

    app: str
    id: str
    state: DeploymentState
    digest: str
    created_at: Instant
    by: str = ""
    update_schedules: bool | None = None
    restart: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    author: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    slices: int = 0
    edition: int = 0
    superseded_by: str = ""
    seen: str = ""
    left: tuple[str, ...] = ()
    tries: int = 0
    busy_until: Instant = 0
    ended_at: Instant | None = None
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None
