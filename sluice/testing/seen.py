"""The runs, waiting jobs and records that a test reads, and its actions on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from chalicelib.core import results, states
from chalicelib.core.dags import rounds
from chalicelib.core.dags.status import Again
from chalicelib.core.definitions.data import is_json
from chalicelib.core.instants import Instant
from chalicelib.core.results import Result
from chalicelib.core.rows.backfill import Backfill as BackfillRow
from chalicelib.core.rows.run import Run as RunRow
from chalicelib.core.runs import workers as worker_rules
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.views import as_json
from chalicelib.flow import fire_events, lookup
from chalicelib.flow.backfills import backfill
from chalicelib.flow.backfills import view as backfill_view
from chalicelib.flow.dags import cancel as dag_cancel
from chalicelib.flow.dags import elements as dag_elements
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.jobs import actions as job_actions
from chalicelib.flow.runs import complete, context, workers
from chalicelib.flow.views import explain, views
from sluice.errors import WrongUsage
from sluice.testing import naming

if TYPE_CHECKING:
    from sluice.testing.app import App

WORKER = "test-worker"
ACCOUNT = "000000000000"


def moment(at: Instant) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Condition:
    """A constraint of a waiting job: its type, whether it is met, and why not."""

    type: str
    met: bool
    why: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice to people that a target got: when, the target, and the body: JSON, or the text of a mail. What is read
    from a secret right before the call is not in it."""

    at: datetime
    to: Mapping[str, Any]
    body: Any


def notice_of(at: Instant, run: RunRow) -> Notice:
    data = run.request.data or {}
    text = str(data["text"])
    return Notice(moment(at), run.request.target, json.loads(text) if is_json(data["content_type"]) else text)


@dataclass(frozen=True, slots=True)
class Record:
    """Work that never became a run, such as an aborted job: its kind (``ABORTED``), its reason, and when. ``count`` is
    how many fires, or events of a large fire, it stands for."""

    schedule: str
    kind: str
    reason: str
    at: datetime
    count: int = 1


class Run:
    """One attempt of a run. Its properties are read at each use, so they show the present state."""

    def __init__(self, app: App, run_id: str, attempt: int) -> None:
        self._app, self.id, self.attempt = app, run_id, attempt

    def __repr__(self) -> str:
        return f"<run of {self.schedule} at {self.at:%Y-%m-%d %H:%M:%S}: {self.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and (self.id, self.attempt) == (other.id, other.attempt)

    def __hash__(self) -> int:
        return hash((self.id, self.attempt))

    @property
    def schedule(self) -> str:
        """The full name of the run's schedule; of the node of a DAG ``demo.flights.nightly/load``."""
        return naming.plain(self._row.schedule)

    @property
    def workflow(self) -> str:
        """The full name of the run's workflow; of the start of a DAG run the DAG."""
        return naming.plain(self._row.workflow)

    @property
    def state(self) -> str:
        """``STARTING``, ``RUNNING``, ``RETRYING``, ``SUCCEEDED``, ``FAILED``, ``CANCELLED`` or ``ABORTED``."""
        return self._row.state

    @property
    def reason(self) -> str:
        """Why the run failed or was cancelled; empty for other states."""
        return self._row.reason.text

    @property
    def at(self) -> datetime:
        """When Sluice claimed it, in UTC."""
        return moment(self._row.claimed_at)

    @property
    def fired_by(self) -> str:
        """What started the run, as text for people."""
        return self._row.fired_by.text

    @property
    def backfill(self) -> str | None:
        """The id of the backfill that started the run; None if none did."""
        return self._row.backfill

    @property
    def properties(self) -> dict[str, Any]:
        return dict(self._row.request.properties)

    @property
    def target(self) -> dict[str, Any]:
        """The target of the start call, including the resources of this run."""
        return dict(self._row.request.target)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that started the run, in the form of the run context."""
        events = views.events_view(self._app.ports, self._row)
        return list(json.loads(as_json(events)))

    @property
    def partitions(self) -> list[dict[str, str]]:
        """The partitions of the run's events, in the order of their arrival."""
        return [dict(event["partition"]) for event in self.events if event.get("partition")]

    @property
    def context(self) -> dict[str, Any]:
        """The context document that the job gets."""
        stored = self._app.ports.payloads.context(self.id)
        return dict(stored if stored is not None else context.build(self._app.ports, self._row))

    @property
    def result(self) -> Any:
        """The JSON value that it has handed on; None if it has handed on nothing, or if that was refused."""
        return self._row.result

    @property
    def result_refused(self) -> str:
        """Why the result that its program gave was not kept; empty if it was."""
        return self._row.result_refused

    def succeed(self, metrics: Mapping[str, Any] | None = None, result: Any = None) -> None:
        """The run ends and succeeds, with a JSON value as its result. Only a run of a worker may report metrics."""
        self._end("SUCCEEDED", "", metrics, result=results.of_value(result))

    def fail(self, reason: str = "the job failed", outcome: str = "failed") -> None:
        """The run ends and fails. Sluice retries it if its workflow has attempts left for this ``outcome``: ``failed``,
        ``timed_out`` or ``lost``. A run of a worker only reports ``failed``."""
        if outcome not in (known := get_args(states.FailureKind)):
            raise WrongUsage(f"expected one of {', '.join(known)}, got {outcome!r}", "outcome")
        self._end("FAILED", reason, None, cast("states.FailureKind", outcome))

    def cancel(self) -> None:
        """A user cancels the run."""
        with self._app.acting():
            dag_cancel.cancel(self._app.ports, self.id, self._app.user)

    def matches(self, partition: Mapping[str, Any]) -> bool:
        """Whether it has these values: in its correlation or in the partition of an event."""
        row = self._row
        return _matches(partition, [row.correlation, row.partition, *self.partitions])

    @property
    def _row(self) -> RunRow:
        row = self._app.ports.rows.get(RunRow, self.id, self.attempt) or fire_events.run(self._app.ports, self.id)
        assert row is not None, f"expected run {self.id}, attempt {self.attempt}"
        return row

    def _end(
        self,
        state: states.RunState,
        reason: str,
        metrics: Mapping[str, Any] | None,
        outcome: states.FailureKind = "failed",
        result: Result = results.NONE,
    ) -> None:
        row = self._row
        if states.is_terminal(row.state) or row.state == "RETRYING":
            raise WrongUsage(f"expected a run that has not ended, got one that is {row.state}", "run")
        if registry.of_run(row).pulled:
            if outcome != "failed":
                raise WrongUsage("expected failed of a run of a worker, which is lost after its lease", "outcome")
            self._report(row, workers.Report(state == "SUCCEEDED", message=reason, metrics=metrics, result=result))
        elif row.target_id is None:
            raise WrongUsage("expected a run that has started, got one that waits for its start call", "run")
        elif metrics is not None:
            raise WrongUsage(f"expected no metrics, because runs at {row.target_kind} report none", "metrics")
        else:
            now = self._app.clock.now()
            self._tell(row, RunUpdate(state, now, reason, row.target_id, outcome=outcome, result=result))
        self._app.settle()

    def _tell(self, row: RunRow, update: RunUpdate) -> None:
        """Report that the run has begun, and then its end, as the target does."""
        ports = self._app.ports
        begun = RunUpdate("RUNNING", ports.clock.now(), target_id=row.target_id)
        self._app.targets.played(row.target_kind).states[row.run_id, row.attempt] = update
        complete.advance_run(ports, row.run_id, row.attempt, begun)
        complete.advance_run(ports, row.run_id, row.attempt, update)

    def _report(self, row: RunRow, report: workers.Report) -> None:
        """Claim the run as a worker, and report its end. Other runs that the claims return are released."""
        ports, pool = self._app.ports, worker_rules.pool_of(row)
        held: list[worker_rules.LeaseId] = []
        mine: worker_rules.LeaseId | None = None
        while mine is None:
            offered = workers.claim(ports, pool, WORKER, workers.MAX_BATCH).leases
            leases = [lease for each in offered if (lease := worker_rules.parse_lease_id(each["lease"])) is not None]
            held += leases
            mine = next((lease for lease in leases if (lease.run_id, lease.attempt) == (row.run_id, row.attempt)), None)
            if not leases:
                raise WrongUsage(f"expected run {row.run_id} on offer in pool {pool}, got none", "run")
        for lease in held:
            if lease != mine:
                workers.release(ports, lease, WORKER)
        workers.heartbeat(ports, mine, WORKER)
        workers.report(ports, mine, WORKER, report)


class Job:
    """Work that waits to become a run."""

    def __init__(self, app: App, job_id: str) -> None:
        self._app, self.id = app, job_id

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.why}>"

    @property
    def state(self) -> str:
        return str(self._view["state"])

    @property
    def why(self) -> str:
        """Why the job has not run yet, in the text of ``sluice why``."""
        return self._view["why"].text

    @property
    def wakes(self) -> str:
        """What will wake the job."""
        return str(self._view["wakes"])

    @property
    def missing(self) -> list[str]:
        """What the trigger of the job still waits for."""
        return list(self._view["missing"])

    @property
    def conditions(self) -> list[Condition]:
        """The constraints of the job's schedule, in order."""
        return [Condition(each["type"], each["met"], each["why"].text) for each in self._view["constraints"]]

    @property
    def partitions(self) -> list[dict[str, str]]:
        """The partitions of the events that the job has gathered."""
        job = lookup.find_job(self._app.ports, self.id)
        events = self._app.ports.jobs.events_of(job.job_id, job.schedule, job.generation)
        own = [job.event] if job.event is not None else []
        return [dict(known) for event in [*own, *events] if (known := rounds.without(event.partition))]

    def approve(self, by: str = "ada", role: str | None = None, reason: str = "") -> None:
        """A user approves the job: ``by`` is the user's name, or the whole ARN; ``role`` is the user's role."""
        with self._app.acting():
            job_actions.approve(self._app.ports, self.id, _caller(by, role), reason)

    def refuse(self, by: str = "ada", role: str | None = None, reason: str = "") -> None:
        """A user refuses the job, so that it is aborted."""
        with self._app.acting():
            job_actions.refuse(self._app.ports, self.id, _caller(by, role), reason)

    def cancel(self) -> None:
        """A user cancels the job."""
        with self._app.acting():
            job_actions.withdraw(self._app.ports, self.id, self._app.user)

    def matches(self, partition: Mapping[str, Any]) -> bool:
        """Whether it has these values: in its correlation or in the partition of an event."""
        return _matches(partition, [lookup.find_job(self._app.ports, self.id).correlation, *self.partitions])

    @property
    def _view(self) -> explain.WhyJobView:
        return explain.why_job(self._app.ports, lookup.find_job(self._app.ports, self.id))


class Node:
    """A node of a DAG run, in its latest round. Its state is read at each use."""

    def __init__(self, dag_run: DagRun, name: str) -> None:
        self._dag_run, self.name = dag_run, name

    def __repr__(self) -> str:
        return f"<node {self.name}: {self.state}>"

    @property
    def state(self) -> str:
        """``PENDING``, ``WAITING``, ``BLOCKED``, ``SKIPPED``, ``ABORTED``, or the state of its run."""
        return self._view["state"]

    @property
    def why(self) -> str:
        """Why it is in this state, in the text of ``sluice dags``."""
        return self._view["why"].text

    @property
    def run(self) -> Run:
        """The last attempt of its run. Raises AssertionError, with the reason, if it has not run."""
        view = self._view
        run_id, attempt = view["run_id"], view["attempt"]
        assert run_id is not None and attempt is not None, (
            f"expected a run of node {self.name}, got none: it is {view['state']}, {view['why'].text}"
        )
        return Run(self._dag_run.app, run_id, attempt)

    def succeed(self) -> None:
        """The run of the node ends and succeeds."""
        self.run.succeed()

    def fail(self, reason: str = "the job failed") -> None:
        """The run of the node ends and fails."""
        self.run.fail(reason)

    @property
    def elements(self) -> list[Element]:
        """The elements of a node with ``each``, in the order of their list; empty for any other node, and before it
        has begun."""
        with self._dag_run.app.acting():
            order = dag_elements.every(self._dag_run.app.ports, self._dag_run._row, self.name)
        return [Element(self, index) for index in order]

    @property
    def _view(self) -> dag_runs.StateOfNodeView:
        nodes = self._dag_run.view["nodes"]
        if self.name not in nodes:
            with self._dag_run.app.acting():
                raise naming.unknown(f"node of DAG {self._dag_run.dag}", self.name, nodes)
        return nodes[self.name]


class Element:
    """An element of a node with ``each``, in its latest round. Its state is read at each use."""

    def __init__(self, node: Node, index: int) -> None:
        self._node, self.index = node, index

    def __repr__(self) -> str:
        return f"<element {self._node.name}[{self.index}]: {self.state}>"

    @property
    def value(self) -> Any:
        """Its value in the list."""
        return self._view["value"]

    @property
    def state(self) -> str:
        """``PENDING`` before it has begun, ``WAITING`` while its job waits, ``ABORTED``, or the state of its run."""
        return self._view["state"]

    @property
    def why(self) -> str:
        """Why it is in this state."""
        return self._view["why"].text

    @property
    def run(self) -> Run:
        """The last attempt of its run. Raises AssertionError, with the reason, if it has not run."""
        view = self._view
        run_id, attempt = view["run_id"], view["attempt"]
        assert run_id is not None and attempt is not None, (
            f"expected a run of element {self._node.name}[{self.index}], got none: it is {view['state']}, {self.why}"
        )
        return Run(self._node._dag_run.app, run_id, attempt)

    def succeed(self) -> None:
        """Its run ends and succeeds."""
        self.run.succeed()

    def fail(self, reason: str = "the job failed") -> None:
        """Its run ends and fails."""
        self.run.fail(reason)

    @property
    def _view(self) -> dag_elements.ElementView:
        dag_run = self._node._dag_run
        return dag_elements.one(dag_run.app.ports, dag_run._row, self._node.name, self.index)


class DagRun:
    """A run of a DAG. Its state and those of its nodes are read at each use."""

    def __init__(self, app: App, dag: str, run_id: str) -> None:
        self.app, self.dag, self.id = app, dag, run_id

    def __repr__(self) -> str:
        return f"<run of DAG {self.dag}: {self.state}, {self.states}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DagRun) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def state(self) -> str:
        """``RUNNING``, ``SUCCEEDED`` or ``FAILED``."""
        return self.view["state"]

    @property
    def states(self) -> dict[str, str]:
        """The state of each node, by its name."""
        return {name: node["state"] for name, node in self.view["nodes"].items()}

    @property
    def at(self) -> datetime:
        """When it started, in UTC."""
        return moment(self._row.claimed_at)

    @property
    def fired_by(self) -> str:
        """What started it, as text for people."""
        return self._row.fired_by.text

    def node(self, name: str) -> Node:
        """A node of the graph with which the run began. Raises `ApiRefused` if it has no node of this name."""
        node = Node(self, name)
        _ = node.state
        return node

    def rerun(
        self,
        start: str | None = None,
        only: str | None = None,
        elements: Literal["failed"] | Sequence[int] | None = None,
    ) -> None:
        """A user runs a part of it again: from the node ``start``, ``only`` one node, or without either all nodes. Of a
        node with ``each``, ``elements`` are those that run again, or ``failed`` for all that failed."""
        if start is not None and only is not None:
            raise WrongUsage("expected start or only, got both", "only")
        what: Again = "from" if start is not None else "only" if only is not None else "all"
        with self.app.acting():
            request = self.app.next_request()
            dag_runs.rerun(self.app.ports, self.dag, self.id, what, start or only, self.app.user, request, elements)

    def cancel(self) -> None:
        """A user cancels it: its active nodes end, and no other node starts."""
        with self.app.acting():
            dag_cancel.cancel(self.app.ports, self.id, self.app.user)

    @property
    def view(self) -> dag_runs.RunOfDagView:
        """The answer of the API about it."""
        return dag_runs.view(self.app.ports, self._row, in_full=True)

    @property
    def _row(self) -> RunRow:
        return dag_runs.begun(self.app.ports, self.dag, self.id)


class Backfill:
    """A backfill. Its state is read at each use."""

    def __init__(self, app: App, schedule: str, backfill_id: str) -> None:
        self._app, self._schedule, self.id = app, schedule, backfill_id

    def __repr__(self) -> str:
        return f"<backfill of {naming.plain(self._schedule)}: {self.state}, {self.counts}>"

    @property
    def state(self) -> str:
        """``RUNNING``, ``DONE``, ``CANCELLED`` or ``ENDED``."""
        return self._row.state

    @property
    def counts(self) -> dict[str, int]:
        """How many of its entries are ``waiting``, ``running``, ``succeeded``, ``failed`` and ``cancelled``."""
        view: Mapping[str, Any] = backfill_view.backfill_view(self._app.ports, self._row)
        return {name: view[name] for name in ("waiting", "running", "succeeded", "failed", "cancelled")}

    @property
    def runs(self) -> list[Run]:
        """Its runs in the order of their starts, each attempt as an item."""
        return [run for run in self._app.runs(naming.plain(self._schedule)) if run.backfill == self.id]

    def cancel(self, runs: bool = False) -> None:
        """A user cancels it; with ``runs`` its active runs, too."""
        with self._app.acting():
            backfill.stop(self._app.ports, self._schedule, self.id, runs, self._app.user)

    @property
    def _row(self) -> BackfillRow:
        return backfill.existing(self._app.ports, self._schedule, self.id)


def _caller(by: str, role: str | None) -> str:
    return by if role is None else f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{by}"


def _matches(wanted: Mapping[str, Any], known: Iterable[Mapping[str, str] | None]) -> bool:
    expected = {key: str(value) for key, value in wanted.items()}
    return not expected or any(values is not None and expected.items() <= values.items() for values in known)
