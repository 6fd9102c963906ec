"""Which run of which job of OpenLineage a run of Sluice is (H6).

Ids are computed. So a repeated event has the same id, and the id of the parent of a run is known without a read.

| run of Sluice | job | run |
|---|---|---|
| an attempt of a run | `<app>.<schedule>` | run id and attempt |
| a DAG run, in all its rounds | `<app>.<dag>` | id of the run that began it |
| an attempt of a node | `<app>.<dag>.<node>` | run id and attempt |
| an element of a node | `<app>.<dag>.<node>.each` | run id and attempt |
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.rows.run import Run

_SPACE = UUID("5a1c3f0e-7d0b-5c7e-9b53-0c8d5a4f2e61")  # of all run ids of Sluice
MESSAGES = "messages"  # the job of the messages of an app that have no workflow of their own


@dataclass(frozen=True, slots=True)
class Subject:
    """A run of a job, as OpenLineage names them."""

    namespace: str
    job: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Family:
    """A run with the run below which it hangs, and the topmost one; both None for a run outside DAGs."""

    own: Subject
    parent: Subject | None = None
    root: Subject | None = None


def namespace_of(prefix: str, name: str) -> str:
    """The namespace of OpenLineage for jobs of the namespace of a full name. ``prefix`` is that of the installation."""
    return f"{prefix}/{name.partition('.')[0]}"


def job_of(schedule: str, workflow: str) -> str:
    """The name of the job of a schedule. A message has that of its workflow: its own name may never come again."""
    if not ids.is_of_message(schedule):
        return ids.plain(schedule).partition(".")[2].replace("/", ".")
    app = schedule.split(".")[1]
    return f"{app}.{MESSAGES}" if ids.is_of_message(workflow) else f"{app}.{workflow.rpartition('.')[2]}"


def dag_run(prefix: str, schedule: str, start: str) -> Subject:
    """The DAG run to which ``schedule`` belongs, a node of it or its start. ``start`` is the run that has begun it."""
    namespace, dag = namespace_of(prefix, schedule), ids.dag_of(schedule)
    return Subject(namespace, dag.partition(".")[2], _uuid(namespace, "dag", start))


def family(prefix: str, run: Run) -> Family:
    """The run of OpenLineage that an attempt of a run is, and those above it."""
    namespace, job = namespace_of(prefix, run.schedule), job_of(run.schedule, run.workflow)
    if ids.is_dag_graph(run.workflow):
        return Family(dag_run(prefix, run.schedule, run.run_id))
    own = Subject(namespace, job, _attempt(namespace, run.run_id, run.attempt))
    value = rounds.of_run(run)
    if value is None:
        return Family(own)
    root = dag_run(prefix, run.schedule, rounds.parse(value).dag_run)
    if run.element is None:
        return Family(own, root, root)
    whole = Subject(namespace, job, _attempt(namespace, str(run.element["of"]), 1))
    return Family(Subject(namespace, f"{job}.each", own.run_id), whole, root)


def spark_properties(prefix: str, run: Run) -> dict[str, str]:
    """The properties by which the listener of OpenLineage in a Spark job reports its events below this run. Where the
    listener is not on the class path, Spark ignores them.

    https://openlineage.io/docs/integrations/spark/configuration/spark_conf
    """
    found = family(prefix, run)
    root = found.root or found.own
    return {
        "spark.openlineage.parentJobNamespace": found.own.namespace,
        "spark.openlineage.parentJobName": found.own.job,
        "spark.openlineage.parentRunId": found.own.run_id,
        "spark.openlineage.rootParentJobNamespace": root.namespace,
        "spark.openlineage.rootParentJobName": root.job,
        "spark.openlineage.rootParentRunId": root.run_id,
        # Otherwise the name of the application, which for EMR may name the attempt: then each run would be a new job.
        "spark.openlineage.appName": found.own.job,
        "spark.openlineage.namespace": found.own.namespace,
    }


def _attempt(namespace: str, run_id: str, attempt: int) -> str:
    return _uuid(namespace, "run", f"{run_id}/{attempt}")


def _uuid(namespace: str, kind: str, name: str) -> str:
    # With the namespace: two installations that deploy one app may give their runs the same ids.
    return str(uuid5(_SPACE, f"{namespace} {kind} {name}"))
