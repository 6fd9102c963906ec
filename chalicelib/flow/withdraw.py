"""Take one waiting job off because somebody wishes it: on record, giving back what it holds (W8)."""

from __future__ import annotations

from chalicelib.core import errors
from chalicelib.core.rows import Record
from chalicelib.flow.check import record_of, take_off
from chalicelib.flow.read import find_job
from chalicelib.ports import MOST_RACES, Ports


def withdraw(ports: Ports, job_id: str, by: str) -> Record:
    """Cancel a job that has not become a run; once this returns it never will. Returns the record of it.

    Refused with 404 if there is none any more, saying what became of it. A retry takes its run along, as FAILED.
    """
    why = f"cancelled by {by}"
    for _ in range(MOST_RACES):
        job, now = find_job(ports, job_id), ports.clock.now()
        if take_off(ports, job, "DROPPED", why, now, exact=True) is not None:
            return record_of(job, "DROPPED", why, now)
    raise errors.changed_meanwhile(f"job {job_id}")
