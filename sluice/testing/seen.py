"""The runs, waiting jobs and records that a test reads, and its actions on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chalicelib.core import states
from chalicelib.core.dags import rounds
from chalicelib.core.instants import Instant
from chalicelib.core.rows.run import Run as RunRow
from chalicelib.core.runs import workers as worker_rules
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.views import as_json
from chalicelib.flow import fire_events, lookup
from chalicelib.flow.jobs import actions as job_actions
from chalicelib.flow.runs import actions, complete, context, workers
from chalicelib.flow.views import explain, views
from sluice.errors import WrongUsage

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
        """The full name of the run's schedule."""
        return self._row.schedule

    @property
    def workflow(self) -> str:
        """The full name of the run's workflow."""
        return self._row.workflow

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

    def succeed(self, metrics: Mapping[str, Any] | None = None) -> None:
        """The run ends and succeeds. Only a run of a worker may report metrics."""
        self._end("SUCCEEDED", "", metrics)

    def fail(self, reason: str = "the job failed") -> None:
        """The run ends and fails. Sluice retries it if its workflow has attempts left."""
        self._end("FAILED", reason, None)

    def cancel(self) -> None:
        """A user cancels the run."""
        with self._app.acting():
            actions.cancel(self._app.ports, self.id, self._app.user)

    def matches(self, partition: Mapping[str, Any]) -> bool:
        """Whether it has these values: in its correlation or in the partition of an event."""
        row = self._row
        return _matches(partition, [row.correlation, row.partition, *self.partitions])

    @property
    def _row(self) -> RunRow:
        row = self._app.ports.rows.get(RunRow, self.id, self.attempt) or fire_events.run(self._app.ports, self.id)
        assert row is not None, f"expected run {self.id}, attempt {self.attempt}"
        return row

    def _end(self, state: states.RunState, reason: str, metrics: Mapping[str, Any] | None) -> None:
        row = self._row
        if states.is_terminal(row.state) or row.state == "RETRYING":
            raise WrongUsage(f"expected a run that has not ended, got one that is {row.state}", "run")
        if registry.of_run(row).pulled:
            self._report(row, state, reason, metrics)
        elif row.target_id is None:
            raise WrongUsage("expected a run that has started, got one that waits for its start call", "run")
        elif metrics is not None:
            raise WrongUsage(f"expected no metrics, because runs at {row.target_kind} report none", "metrics")
        else:
            self._tell(row, RunUpdate(state, self._app.clock.now(), reason, row.target_id))
        self._app.settle()

    def _tell(self, row: RunRow, update: RunUpdate) -> None:
        """Report that the run has begun, and then its end, as the target does."""
        ports = self._app.ports
        begun = RunUpdate("RUNNING", ports.clock.now(), target_id=row.target_id)
        self._app.targets.played(row.target_kind).states[row.run_id, row.attempt] = update
        complete.advance_run(ports, row.run_id, row.attempt, begun)
        complete.advance_run(ports, row.run_id, row.attempt, update)

    def _report(self, row: RunRow, state: str, reason: str, metrics: Mapping[str, Any] | None) -> None:
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
        workers.report(ports, mine, WORKER, workers.Report(state == "SUCCEEDED", message=reason, metrics=metrics))


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


def _caller(by: str, role: str | None) -> str:
    return by if role is None else f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{by}"


def _matches(wanted: Mapping[str, Any], known: Iterable[Mapping[str, str] | None]) -> bool:
    expected = {key: str(value) for key, value in wanted.items()}
    return not expected or any(values is not None and expected.items() <= values.items() for values in known)
