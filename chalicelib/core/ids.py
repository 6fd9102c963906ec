"""Ids are computed, never random: a repeated operation computes the same id, which makes it idempotent.

A job id contains the schedule of its job: ``<namespace>.<app>.<schedule>.<generation>.<digest>``. The run that a job
becomes keeps the id (docs/internals/design.md), so one id follows a piece of work from its first event to its history.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MESSAGE = "~"
NOTICE = "notice-"  # the prefix of the names of messages that are notices
MAX_DIGITS = 6  # of the number of an attempt
STEP = "."  # in the id of a backfill: marks a step of a re-processing (L21)
DAG = "~"  # after a name: marks a schedule or graph that Sluice makes from a DAG (W4)
_FULL, _REST_OF_ID = r"\b([\w-]+\.[\w-]+\.[\w-]+)", r"\.[0-9a-z]+\.[0-9a-f]{20}"
_NODES = re.compile(rf"{_FULL}~[0-9a-f]{{8}}~([\w-]+)(?![\w-]|{_REST_OF_ID})")
_GRAPHS = re.compile(rf"{_FULL}~(?:[0-9a-f]{{8}})?(?![\w~-]|{_REST_OF_ID})")


def digest(*parts: object, length: int = 20) -> str:
    """A hexadecimal digest of ``length`` characters (4 bits each). The parts may hold any character."""
    texts = [str(part) for part in parts]
    text = "".join(f"{len(part)}:{part}" for part in texts)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def base36(number: int) -> str:
    """A number in base 36, in lower case. Raises ValueError for a negative one."""
    if number < 0:
        raise ValueError(f"expected a number that is not negative, got {number}")
    digits = ""
    while number:
        number, last = divmod(number, 36)
        digits = DIGITS[last] + digits
    return digits or "0"


class JobId(NamedTuple):
    """The parts of a job id; as text, the id."""

    schedule: str
    generation: int
    digest: str

    def __str__(self) -> str:
        return f"{self.schedule}.{base36(self.generation)}.{self.digest}"


def job_id(schedule: str, generation: int, first: str) -> str:
    """The id of the job that ``first`` (an event id, or ``fire:<nominal>:<leaf>:<i>``) creates."""
    return str(JobId(schedule, generation, digest(schedule, generation, first)))


def parse_job_id(text: str) -> JobId | None:
    """The parts of a job id, or None if the text is malformed."""
    schedule, _, suffix = text.rpartition(".")
    schedule, _, generation = schedule.rpartition(".")
    if schedule.count(".") != 2 or not suffix or not generation or set(generation) - set(DIGITS):
        return None
    return JobId(schedule, int(generation, 36), suffix)


def message_schedule(app: str, name: str) -> str:
    """The full name of the schedule of a message (L16). No name that a user chooses begins with a tilde."""
    return f"{app}.{MESSAGE}{name}"


def default_workflow(app: str) -> str:
    """The full name of the workflow that holds an app's default target."""
    return f"{app}.{MESSAGE}"


def is_of_message(name: str) -> bool:
    """Whether the full name of a schedule or a workflow belongs to a message or to a default target."""
    return name.rpartition(".")[2].startswith(MESSAGE)


def is_of_notice(name: str) -> bool:
    """Whether the full name of a schedule is that of the message of a notice (W9)."""
    return name.rpartition(".")[2].startswith(MESSAGE + NOTICE)


def is_of_dag(name: str) -> bool:
    """Whether the full name of a schedule belongs to a DAG: to its start, or to one of its nodes (W4)."""
    return DAG in name.rpartition(".")[2][1:] and not is_of_message(name)


def is_dag_node(name: str) -> bool:
    """Whether the full name of a schedule is that of a node of a DAG."""
    return is_of_dag(name) and not name.endswith(DAG)


def dag_of(name: str) -> str:
    """The full name of the DAG of a schedule or a graph."""
    return name[: name.find(DAG, name.rfind(".") + 1)]


def is_dag_graph(name: str) -> bool:
    """Whether the full name of a workflow is that of a graph, the workflow that the start of a DAG runs."""
    return is_of_dag(name) and name.rpartition(".")[2].count(DAG) == 1 and not name.endswith(DAG)


def plain(name: str) -> str:
    """The name of a schedule or a graph as people know it: ``demo.flights.nightly/load`` for the node of a DAG, and
    ``demo.flights.nightly`` for its start and its graph."""
    if not is_of_dag(name):
        return name
    node = "" if is_dag_graph(name) else name.rpartition(DAG)[2]
    return f"{dag_of(name)}/{node}" if node else dag_of(name)


def plain_in(text: str) -> str:
    """A text with the names in it as people know them. Ids of jobs and runs stay as they are: people copy them."""
    if DAG not in text:
        return text
    return _GRAPHS.sub(r"\1", _NODES.sub(r"\1/\2", text))


def dag_start(dag: str) -> str:
    """The full name of the schedule that starts the runs of a DAG; it does not depend on the graph."""
    return f"{dag}{DAG}"


def dag_node(graph: str, node: str) -> str:
    """The full name of the schedule of a node of a graph."""
    return f"{graph}{DAG}{node}"


def step_of(reprocess_id: str, number: int) -> str:
    """The id of the backfill that is a step of a re-processing (L21)."""
    return f"{reprocess_id}{STEP}{number}"


def reprocess_of(backfill_id: str) -> str | None:
    """The id of the re-processing of which a backfill is a step; None if it is no step."""
    reprocess_id, point, _ = backfill_id.partition(STEP)
    return reprocess_id if point else None


def event_id(kind: str, *source: object) -> str:
    """The id of an event. It follows from the identity of its source, not from the time or number of its reports."""
    return f"{kind}-{digest(kind, *source)}"


def client_token(run_id: str, attempt: int) -> str:
    """The idempotency token of a start call to EMR, at most 64 characters. Each attempt has its own, because with the
    token of an earlier attempt EMR would return its failed run."""
    return digest("start", run_id, attempt, length=40)


def holder_of(job_id: str, attempt: int) -> str:
    """The holder name under which a limit remembers an attempt of a run."""
    return f"{job_id}#{attempt:03d}"


def attempt_of(holder: str) -> tuple[str, int]:
    """The run id and attempt of a holder name."""
    run_id, _, attempt = holder.rpartition("#")
    return run_id, int(attempt)


def attempt_named(name: str) -> tuple[str, int] | None:
    """The run and the attempt of ``<run id>-<attempt>``, the name of a run at its target; None for any other text."""
    run_id, _, attempt = name.rpartition("-")
    is_number = attempt.isascii() and attempt.isdecimal() and len(attempt) <= MAX_DIGITS
    return (run_id, int(attempt)) if run_id and is_number else None


def shard(key: str, shards: int) -> str:
    """The shard of an index with ``shards`` parts that a key belongs to."""
    return str(int(digest(key, length=8), 16) % shards)
