"""Ids are computed, never drawn: whoever does the same thing again computes the same id, so twice is harmless.

A job id tells where its job lives: ``<namespace>.<app>.<schedule>.<generation>.<digest>``. The run that a job becomes
keeps the id (run id = job id, docs/design.md), so one word follows a piece of work from its first event to its history.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MESSAGE = "~"
DAG = "~"  # behind a name: what a DAG has made of its own (W4)


def digest(*parts: object, length: int = 20) -> str:
    """A hexadecimal digest (``length`` * 4 bits) of the parts, which may hold any character."""
    texts = [str(part) for part in parts]
    text = "".join(f"{len(part)}:{part}" for part in texts)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def base36(number: int) -> str:
    if number < 0:
        raise ValueError(f"expected a number that is not negative, got {number}")
    digits = ""
    while number:
        number, last = divmod(number, 36)
        digits = DIGITS[last] + digits
    return digits or "0"


class JobId(NamedTuple):
    schedule: str
    generation: int
    digest: str

    def __str__(self) -> str:
        return f"{self.schedule}.{base36(self.generation)}.{self.digest}"


def job_id(schedule: str, generation: int, first: str) -> str:
    """The id of the job that ``first`` (an event id, or ``fire:<nominal>:<leaf>:<i>``) brings into being."""
    return str(JobId(schedule, generation, digest(schedule, generation, first)))


def parse_job_id(text: str) -> JobId | None:
    """The parts of a job id, or None if the text is none."""
    schedule, _, rest = text.rpartition(".")
    schedule, _, generation = schedule.rpartition(".")
    if schedule.count(".") != 2 or not rest or not generation or set(generation) - set(DIGITS):
        return None
    return JobId(schedule, int(generation, 36), rest)


def message_schedule(app: str, name: str) -> str:
    """The full name of the schedule that a message is (L16). No name of a user's begins with the tilde."""
    return f"{app}.{MESSAGE}{name}"


def default_workflow(app: str) -> str:
    """The full name of the workflow that holds an app's default target."""
    return f"{app}.{MESSAGE}"


def is_of_message(name: str) -> bool:
    """Whether the full name of a schedule or a workflow is one that only messages have."""
    return name.rpartition(".")[2].startswith(MESSAGE)


def is_of_dag(name: str) -> bool:
    """Whether the full name of a schedule is one that a DAG has made: its start, or one of its nodes (W4)."""
    return DAG in name.rpartition(".")[2][1:] and not is_of_message(name)


def is_dag_node(name: str) -> bool:
    """Whether the full name of a schedule is that of a node of a DAG."""
    return is_of_dag(name) and not name.endswith(DAG)


def dag_of(name: str) -> str:
    """The full name of the DAG that a schedule, or a graph, belongs to."""
    return name[: name.find(DAG, name.rfind(".") + 1)]


def is_dag_graph(name: str) -> bool:
    """Whether the full name of a workflow is that of a graph: what the start of a DAG's run stands for."""
    return is_of_dag(name) and name.rpartition(".")[2].count(DAG) == 1 and not name.endswith(DAG)


def dag_start(dag: str) -> str:
    """The full name of the schedule that begins the runs of a DAG, whatever its graph."""
    return f"{dag}{DAG}"


def dag_node(graph: str, node: str) -> str:
    """The full name of the schedule that a node of a graph is."""
    return f"{graph}{DAG}{node}"


def event_id(kind: str, *source: object) -> str:
    """The id of an event, from the identity of its source (never from when or how often it was told)."""
    return f"{kind}-{digest(kind, *source)}"


def client_token(run_id: str, attempt: int) -> str:
    """EMR's idempotency token: one per attempt, for a token kept over attempts replays the failed run (64 at most)."""
    return digest("start", run_id, attempt, length=40)


def holder_of(job_id: str, attempt: int) -> str:
    """What a line remembers a run by: its id and attempt."""
    return f"{job_id}#{attempt:03d}"


def attempt_of(holder: str) -> tuple[str, int]:
    """The run and attempt that a line remembers by this name."""
    run_id, _, attempt = holder.rpartition("#")
    return run_id, int(attempt)


def shard(key: str, shards: int) -> str:
    """Which of ``shards`` parts of an index a key belongs to."""
    return str(int(digest(key, length=8), 16) % shards)
