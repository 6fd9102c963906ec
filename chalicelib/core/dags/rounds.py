"""What makes the runs of a DAG's nodes belong together: one correlation key, whose value names the run of the DAG (W4).

It is a key like those of partitions (T19), carried from run to run by their statuses. Its value is the id of the run
that began it all, and a **round**: 1 for what its trigger started, one more with each re-run. A round that is ``alone``
is one node run again by itself: what follows that node does not hear of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from chalicelib.core import ids
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.dag_start import DagStart
from chalicelib.core.targets.delivery import Delivery
from chalicelib.core.targets.retries import Retries

KEY = "~dag"  # no partition key of a dataset has a tilde
BY = (KEY,)
ALONE = "!"


class Round(NamedTuple):
    """A round of a run of a DAG."""

    dag_run: str
    number: int = 1
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.dag_run}/{self.number}{ALONE if self.alone else ''}"


def parse(value: str) -> Round:
    dag_run, _, number = value.rpartition("/")
    return Round(dag_run, int(number.removesuffix(ALONE)), number.endswith(ALONE))


def which(correlation: Mapping[str, str] | None) -> str | None:
    """The round of a job or a run, as the key has it; None if it belongs to no DAG."""
    return (correlation or {}).get(KEY)


def without(values: Mapping[str, str] | None) -> dict[str, str] | None:
    """The values of partition keys alone, as people know them; None if there are none."""
    return {key: value for key, value in (values or {}).items() if key != KEY} or None


def announced(run: Run) -> Mapping[str, str] | None:
    """What the status of a run carries on. That of a node which ran again alone, as a part of a re-run (W4) or by
    itself (W15), is the affair of no DAG: what follows it may have run already."""
    value = which(run.partition)
    if value is None:
        return run.partition
    by_itself = run.rerun_of is not None and not ids.is_dag_graph(run.workflow)
    return without(run.partition) if by_itself or parse(value).alone else run.partition


def alone(correlation: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The correlation of a node's run that is run again by itself (W15)."""
    value = which(correlation)
    return correlation if value is None else {**(correlation or {}), KEY: str(parse(value)._replace(alone=True))}


def of_run(run: Run) -> str | None:
    """The round that a run belongs to: the first of its own, if it begins one."""
    if not ids.is_of_dag(run.schedule):
        return None
    return str(Round(run.run_id)) if ids.is_dag_graph(run.workflow) else which(run.correlation)


def told(work: Job | Run) -> dict[str, Any] | None:
    """What a run's context, and whoever asks for a run or a job, is told of its DAG; None if it has none to tell of."""
    value = of_run(work) if isinstance(work, Run) else which(work.correlation)
    if value is None:
        return None
    own, node = parse(value), work.schedule.rpartition(ids.DAG)[2]  # that of a start is empty
    return {"name": ids.dag_of(work.schedule), "run_id": own.dag_run, "round": own.number, "node": node or None}


@cache
def begins() -> Workflow:
    """The workflow of every DAG's start. It is nobody's to read, put or delete, so it is not stored."""
    target = DagStart()  # none of those that a user may name
    return Workflow.model_construct(None, target=target, retries=Retries(), delivery=Delivery())
