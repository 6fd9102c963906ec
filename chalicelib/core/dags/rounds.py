"""Rounds: the correlation key that joins the runs of a DAG's nodes, and whose value names the DAG run (W4).

The key is like those of partitions (T19): statuses carry it from run to run. Its value is the id of the run of the
DAG's start, and a **round**: 1 for the runs of its trigger, one more for each re-run. A round that is ``alone`` is a
single node that runs again; its status does not reach the nodes that follow.
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
from chalicelib.core.targets.retries import Delivery, Retries

KEY = "~dag"  # no partition key of a dataset has a tilde
BY = (KEY,)
ALONE = "!"


class Round(NamedTuple):
    """A round of a DAG run."""

    dag_run: str
    number: int = 1
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.dag_run}/{self.number}{ALONE if self.alone else ''}"


def parse(value: str) -> Round:
    """The round that a value of the key names, the inverse of ``str``."""
    dag_run, _, number = value.rpartition("/")
    return Round(dag_run, int(number.removesuffix(ALONE)), number.endswith(ALONE))


def which(correlation: Mapping[str, str] | None) -> str | None:
    """The value of the key in a correlation; None for a job or a run outside DAGs."""
    return (correlation or {}).get(KEY)


def without(values: Mapping[str, str] | None) -> dict[str, str] | None:
    """The values of partition keys alone, for users; None if there are none."""
    return {key: value for key, value in (values or {}).items() if key != KEY} or None


def announced(run: Run) -> Mapping[str, str] | None:
    """The partition values that the status of a run carries. A node may run again alone, as a re-run of the DAG (W4) or
    of the run (W15). Its status then has no round: the nodes that follow may have run already."""
    value = which(run.partition)
    if value is None:
        return run.partition
    single = run.rerun_of is not None and not ids.is_dag_graph(run.workflow)
    return without(run.partition) if single or parse(value).alone else run.partition


def alone(correlation: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The correlation of a re-run of a node's run (W15), whose status reaches no other node."""
    value = which(correlation)
    return correlation if value is None else {**(correlation or {}), KEY: str(parse(value)._replace(alone=True))}


def of_run(run: Run) -> str | None:
    """The round of a run; of the run of a DAG's start the first round; None outside DAGs."""
    if not ids.is_of_dag(run.schedule):
        return None
    return str(Round(run.run_id)) if ids.is_dag_graph(run.workflow) else which(run.correlation)


def decides(correlation: Mapping[str, str] | None) -> Round | None:
    """The round of a node's job or run, if the nodes after it follow its end; None outside DAGs and for one alone."""
    value = which(correlation)
    round_ = parse(value) if value is not None else None
    return None if round_ is None or round_.alone else round_


def dag_view(work: Job | Run) -> dict[str, Any] | None:
    """The DAG, DAG run, round and node of a job or a run, for its context and the API; None outside DAGs."""
    value = of_run(work) if isinstance(work, Run) else which(work.correlation)
    if value is None:
        return None
    own, node = parse(value), work.schedule.rpartition(ids.DAG)[2]  # empty for a start
    return {"name": ids.dag_of(work.schedule), "run_id": own.dag_run, "round": own.number, "node": node or None}


@cache
def begins() -> Workflow:
    """The workflow of every DAG's start. It is not stored, since no user reads, puts or deletes it."""
    target = DagStart()  # a type of target that no user can name
    return Workflow.model_construct(None, target=target, retries=Retries(), delivery=Delivery(), timeout="never")
