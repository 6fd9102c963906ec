"""What is stored of a request that asked for a job, so that a repeat of it is answered with the same job."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class Requested(StoredRow):
    """The job that a request made. ``id`` follows from what was asked for and from the request's own id, and from no
    generation: a repeat finds the first job also when its schedule was replaced, or deleted and created again."""

    id: str
    job_id: str
    expires_at: Instant


def request_of(kind: str, name: str, request_id: str) -> str:
    """The id of a request of a kind (``run``, ``rerun``) that concerns a schedule or a run of this name."""
    return ids.digest(kind, name, request_id, length=40)
