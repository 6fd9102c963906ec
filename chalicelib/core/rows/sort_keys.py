"""The sort keys of jobs and of the attempts of runs. A job's sort key begins with what created it:

    FIRE#<nominal>#<leaf>#<index>   a fire, as the emitter wrote it; with +<count>, a bundle of its events
    GATHERING[#<values>]            the job that gathers events, one for each correlation
    JOB#<created at>#<id>           a job that was detached from its schedule's gathering job or from its fire
    JOB#BACKFILL#<id>#<entry>       an entry of a backfill
    RETRY#<run>#<attempt>           the next attempt of a run that failed
    REDRIVE#<run>#<attempt>         a dead letter that is delivered again
    RUNNOW#<digest>                 a run that a user requested
    LIST#<index>#<digest>           an element of the list of a DAG's node

The rows APPLIED# and ARRIVED# lie in the same partition and sort before `FIRST_JOB`.
"""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.instants import Instant, iso

GATHERING = "GATHERING"
FIRST_JOB = "FIRE#"
DETACHED = "JOB#"
BACKFILL = f"{DETACHED}BACKFILL#"


def events(nominal: Instant, leaf: str) -> str:
    """What the sort keys of all events of a fire begin with."""
    return f"{FIRST_JOB}{iso(nominal)}#{leaf}#"


def fire(nominal: Instant, leaf: str, index: int) -> str:
    return f"{events(nominal, leaf)}{index}"


def bundle(nominal: Instant, leaf: str, first: int, count: int) -> str:
    return f"{fire(nominal, leaf, first)}+{count}"


def event(bundle_key: str, number: int) -> str:
    """The name of an event in its bundle, in the place of a sort key."""
    return f"{bundle_key}/{number}"


def event_in(name: str) -> tuple[str, int] | None:
    """The sort key of the bundle and the number of the event that `event` names; None for a sort key."""
    key, found, number = name.rpartition("/")
    return (key, int(number)) if found and is_fire(name) else None


def events_of(sort_key: str) -> int:
    """How many events a job with this sort key was written for."""
    _, found, count = sort_key.rpartition("+")
    return int(count) if found and is_fire(sort_key) else 1


def is_fire(sort_key: str) -> bool:
    """Whether the job is a fire that no check has moved since the emitter wrote it."""
    return sort_key.startswith(FIRST_JOB)


def may_be_fire(sort_key: str) -> bool:
    """Whether the job is a fire, or may be one that a check has moved: a detached match has such a key, too."""
    return is_fire(sort_key) or (sort_key.startswith(DETACHED) and not sort_key.startswith(BACKFILL))


def detached(created_at: Instant, job_id: str) -> str:
    return f"{DETACHED}{iso(created_at)}#{job_id.rpartition('.')[2]}"


def backfill(backfill_id: str, index: int) -> str:
    return f"{BACKFILL}{backfill_id}#{index:06d}"


def retry(run_id: str, attempt: int) -> str:
    return f"RETRY#{run_id}#{attempt}"


def redrive(run_id: str, attempt: int) -> str:
    return f"REDRIVE#{run_id}#{attempt}"


def run_now(*request: str) -> str:
    """The sort key of a requested run. It follows from the request, so a repeated request has the same job."""
    return f"RUNNOW#{ids.digest(*request)}"


def element(job_id: str, index: int) -> str:
    return f"LIST#{index:04d}#{job_id.rpartition('.')[2]}"


def attempt(number: int) -> str:
    return f"A#{number:03d}"
