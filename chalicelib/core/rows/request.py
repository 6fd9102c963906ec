"""The row of a request that created a job, so that a repeated request gets the same job."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class Requested(StoredRow):
    """The job that a request created. ``id`` is a digest of the kind, the name and the request's own id. It does not
    depend on the generation: a repeated request finds the first job also after its schedule was replaced, or deleted
    and created again."""

    id: str
    job_id: str
    expires_at: Instant


def request_of(kind: str, name: str, request_id: str) -> str:
    """The id of a request of a kind (``run``, ``rerun``) that concerns a schedule or a run of this name."""
    return ids.digest(kind, name, request_id, length=40)
