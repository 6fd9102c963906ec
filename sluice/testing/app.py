"""Apps under test: the service on tables in memory, the events that a test sends, and the state that a test reads."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError

from chalicelib.core import errors, ids
from chalicelib.core.backfills.request import Backfill
from chalicelib.core.definitions import app as app_document
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.documents import SENT
from chalicelib.core.events.alarms import AlarmChange
from chalicelib.core.events.cloudevents import CloudEvent
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.fires import bundles, upcoming
from chalicelib.core.instants import Instant, Millis, duration, iso, parse_instant
from chalicelib.core.jobs import check, of_period
from chalicelib.core.rows.run import Run as RunRow
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.runs import fires
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.sizes import parse_bytes
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.dag_start import DagStart
from chalicelib.core.targets.target import Target
from chalicelib.core.triggers import parts, tree
from chalicelib.flow import lookup
from chalicelib.flow.backfills import backfill
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.flow.ingest import objects, outbox
from chalicelib.flow.runs import complete
from chalicelib.flow.schedules import actions, pauses
from chalicelib.flow.views import explain
from chalicelib.log import logger
from chalicelib.settings import Settings
from sluice import documents
from sluice.errors import ApiRefused, Problem, WrongUsage
from sluice.refusals import refusal
from sluice.testing import explanation, naming, seen
from sluice.testing.clock import HandClock
from sluice.testing.engine import Act, Engine, make_ports, next_work, stopwatch
from sluice.testing.memory import MemoryHints, MemoryLake, MemoryMetrics, MemoryPayloads, ParsedRows
from sluice.testing.memory_tables import MemoryTables
from sluice.testing.seen import ACCOUNT, DagRun, Job, Notice, Record, Run, moment
from sluice.testing.tables import TABLES
from sluice.testing.targets import PlayedTargets

AT = "2026-03-02T12:00:00Z"  # a Monday
USER = f"arn:aws:iam::{ACCOUNT}:user/ada"
LAKE = "lake-bucket"  # the bucket that `bucket: lake` names


class HasDocument(Protocol):
    """An object that makes an app document, such as a builder."""

    def document(self) -> Mapping[str, Any]: ...


Document = TypeVar("Document", bound=BaseModel)
Work = TypeVar("Work", Run, Job)
Source = str | os.PathLike[str] | Mapping[str, Any] | HasDocument


class App(Engine):
    """An app, deployed at the instant ``at`` to a separate installation in memory. Only the test moves the clock.

    ``source`` is a YAML or JSON file, a document, or an object with a method ``document``. ``values`` fill the
    placeholders of a file. Names of this app and of datasets of its namespace may be short.

    Raises `ApiRefused` where the API would refuse a request, with the same code, field and hint.
    """

    def __init__(
        self, source: Source, at: str | datetime = AT, values: Mapping[str, str] | None = None, user: str = USER
    ) -> None:
        self.user = user
        with _refusals():
            self.clock = HandClock(_instant(at))
        self.hints = MemoryHints()
        self.targets = PlayedTargets(self.clock)
        self.lake = MemoryLake()
        self._tables = MemoryTables()
        for name, arguments in TABLES.items():
            self._tables.create_table(name, **arguments)
        metrics = MemoryMetrics()
        settings = Settings(
            catalog_table="CatalogTable",
            jobs_table="JobsTable",
            runs_table="RunsTable",
            hints_queue_url="",
            lake_bucket=LAKE,
            control_bucket="control-bucket",
            emr_application_id="app0",
            emr_job_role_arn=f"arn:aws:iam::{ACCOUNT}:role/job",
            wake_shards=1,
            history_shards=1,
        )
        dynamo = ParsedRows(self._tables, settings, stopwatch(), metrics, self.clock.now)
        self.ports = make_ports(
            dynamo, settings, self.clock, self.hints, self.targets, MemoryPayloads(), self.lake, metrics
        )
        self._requests = self._puts = 0
        self._alarms: dict[str, str] = {}
        self._spans: dict[str, Millis] = {}  # of runs, by the plain name of their schedule; those of all by ""
        self._ends: list[tuple[Instant, Run]] = []  # of the runs that end by themselves
        self.namespace, self.app = "", ""
        first = _document(source, values)
        self.namespace, self.app = str(first.get("namespace", "test")), str(first.get("app", "app"))
        self.apply(first)

    # -- definitions -----------------------------------------------------------------------------------------------

    def apply(self, source: Source, values: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Deploy a document: this app again, or another app of this installation. Returns the report."""
        content = _document(source, values)
        namespace, app = str(content.get("namespace", self.namespace)), str(content.get("app", self.app))
        with self.acting():
            self.install(content)
            store.put(self.ports, "namespace", namespace, {}, self.user)
            document = _checked(app_document.App, content)
            report = deploy.deploy(self.ports, namespace, app, document, self.user)
        self.tick()
        return dict(report)

    def enable(self, schedule: str) -> None:
        """A user enables a schedule or a DAG."""
        with self.acting():
            actions.enable(self.ports, self._changed(schedule), self.user)

    def disable(self, schedule: str) -> None:
        """A user disables a schedule or a DAG."""
        with self.acting():
            actions.disable(self.ports, self._changed(schedule), self.user)

    def pause(self, schedule: str, mode: str = "hold") -> None:
        """A user pauses a schedule or a DAG with the mode ``hold``, ``backlog`` or ``drain``."""
        if mode not in get_args(PauseMode):
            raise WrongUsage(f"expected one of {', '.join(get_args(PauseMode))}, got {mode!r}", "mode")
        with self.acting():
            name = self._changed(schedule)
            pause = pauses.pause_dag if name.endswith(ids.DAG) else pauses.pause
            pause(self.ports, name, cast("PauseMode", mode), self.user)

    def resume(self, schedule: str) -> None:
        """A user resumes a schedule or a DAG."""
        with self.acting():
            name = self._changed(schedule)
            resume = pauses.resume_dag if name.endswith(ids.DAG) else pauses.resume
            resume(self.ports, name, self.user)

    def skip(self, schedule: str, at: str | datetime) -> None:
        """A user skips one occurrence to come of the times of a schedule or a DAG."""
        self._skip(schedule, at, wanted=True)

    def unskip(self, schedule: str, at: str | datetime) -> None:
        """A user takes the skip of an occurrence back."""
        self._skip(schedule, at, wanted=False)

    def _skip(self, schedule: str, at: str | datetime, wanted: bool) -> None:
        with self.acting():
            pauses.skip(self.ports, self.schedule(schedule), _instant(at), self.user, wanted)

    # -- events ----------------------------------------------------------------------------------------------------

    def partition(self, dataset: str, values: Mapping[str, Any] | None = None, /, **keys: Any) -> None:
        """A partition of a dataset is ready: ``partition("flights", day="2026-03-01")``."""
        with self.acting():
            name, document = self._dataset(dataset)
            objects.register_values(self.ports, name, document, {"partition": {**(values or {}), **keys}})

    def parts(self, schedule: str, /, **period: Any) -> list[tuple[str, dict[str, str]]]:
        """The partitions for which the job of a period waits, each with its dataset, in the order of time: those of a
        schedule with ``per`` and of the values of its job. ``partition`` takes each of them:

            for part in app.parts("summarize", day="2026-03-29"):
                app.partition(*part)
        """
        with _refusals():
            _, definition = lookup.existing(self.ports, self.schedule(schedule))
            values = _texts(period) or {}
            own = definition.period_of(values)
            if own is None or values.keys() != set(definition.keys):
                expected = f"a schedule with per, and values of {', '.join(definition.keys) or 'its period'}"
                raise errors.invalid("period", expected, _values(values) or "none")
            named = (each.name for leaf in tree.leaves(definition.trigger) for each in leaf.trigger.datasets())
            known = dict(map(self._dataset, named))
            leaves = of_period.parts_by_leaf(definition, of_period.Place(own, own, values, ()), known)
        found = [(each.dataset, parts.values_of(each, part)) for each in leaves.values() for part in parts.every(each)]
        return [part for number, part in enumerate(found) if part not in found[:number]]

    def object(self, where: str, key: str = "", size: int | str = 0, text: str = "", etag: str = "") -> str:
        """An object is put into S3, and its notification arrives. ``where`` is ``s3://bucket/key``, or a dataset to
        whose prefix ``key`` is added. ``size`` is in bytes, or text such as ``2GB``. Returns the result of the
        notification."""
        bucket, key = self._place(where, key)
        with self.acting():
            amount = parse_bytes(size, "size") if isinstance(size, str) else size
            self.lake.objects[bucket, key], self.lake.etags[bucket, key] = text, etag
            self._puts, at = self._puts + 1, self.clock.now()
            self.lake.put_at[bucket, key] = at
            created = ObjectCreated(bucket, key, at, amount, etag, sequencer=f"{self._puts:016X}")
            return objects.match_object(self.ports, created)

    def event(self, kind: str, payload: Mapping[str, Any] | None = None, /, id: str = "", **fields: Any) -> None:
        """A custom event is posted to the namespace. Without ``id``, each call posts a new event."""
        envelope = outbox.Envelope(kind, id or self.next_request(), {**(payload or {}), **fields})
        with self.acting():
            outbox.post(self.ports, self.namespace, [envelope])

    def cloudevent(self, **members: Any) -> None:
        """A CloudEvent is posted to the namespace: ``cloudevent(source="/orders", id="o-7", type="orders.closed",
        data={...})``; other members are further attributes. Without ``id``, each call posts a new one."""
        given = {"specversion": "1.0", "id": self.next_request(), **members}
        with self.acting():
            event = _checked(CloudEvent, given)
            outbox.post(self.ports, self.namespace, [outbox.of_cloudevent(event)])

    def alarm(self, name: str, state: str = "ALARM") -> None:
        """An alarm of CloudWatch changes to the state ``ALARM``, ``OK`` or ``INSUFFICIENT_DATA``."""
        arn, before = f"arn:aws:cloudwatch:us-east-1:{ACCOUNT}:alarm:{name}", self._alarms.get(name)
        self._alarms[name] = state
        with self.acting():
            outbox.match_alarm(
                self.ports, AlarmChange(name, arn, state, before, f"{name} is {state}", self.clock.now())
            )

    def run_now(self, schedule: str, partition: Mapping[str, Any] | None = None, /, **properties: Any) -> None:
        """A user runs a schedule now, with these properties. ``partition`` are the values of its keys ``by``:
        ``run_now("report", {"day": "2026-03-01"})``."""
        values = _texts(partition)
        with self.acting():
            actions.run_now(self.ports, self._changed(schedule), properties, self.next_request(), None, values)

    def backfill(self, schedule: str, **request: Any) -> seen.Backfill:
        """A user starts a backfill: ``backfill("report", start="2026-02-01T00:00Z", to="2026-02-08T00:00Z")``, or
        ``partitions=...``; the other fields are those of the API."""
        fields = {{"start": "from"}.get(name, name): value for name, value in request.items()}
        with self.acting():
            name, document = self._changed(schedule), _checked(Backfill, fields)
            begun = backfill.begin(self.ports, name, document, self.user, self.next_request())
        return seen.Backfill(self, name, begun.id)

    def next_request(self) -> str:
        """An id that no request of this test has had."""
        self._requests += 1
        return f"request-{self._requests}"

    # -- external systems ------------------------------------------------------------------------------------------

    def measure(self, value: float, of: str | None = None) -> None:
        """Set the value that load constraints measure from now on. ``of`` is the name of the metric, the id of the EMR
        application or of the subnet; without it, the value applies to all."""
        self.targets.measures.insert(0, (of, value))

    def answer_probes(self, *answers: Any) -> None:
        """Set the answers of probes from now on, as JSON. Each probe gets the next answer; the last one repeats."""
        if not answers:
            raise WrongUsage("expected an answer, got none", "answers", 'such as answer_probes({"met": True})')
        self.targets.answers = list(answers)

    def answer_calls(self, schedule: str, *answers: str) -> None:
        """Set how the target answers the next start calls, or deliveries, of a schedule; afterwards it accepts them.

        ``throttled``: it refuses for now. ``refused``: it refuses for good. ``unreachable``: the call does not arrive,
        and has no answer. ``lost``: the target begins the run, and its answer is lost."""
        with _refusals():
            name = self.schedule(schedule)
            _, definition = lookup.existing(self.ports, name)
            workflow = lookup.workflow_of(self.ports, definition.workflow)
        kind = registry.of_type(workflow.target.type) if workflow is not None else Target
        if kind.pulled or kind is DagStart:
            raise WrongUsage(f"expected a schedule whose target Sluice calls, got {naming.plain(name)}", "schedule")
        self.targets.script.set(name, answers)

    def answer_functions(self, schedule: str, *answers: Any) -> None:
        """Set what the function of a schedule returns in its next calls, as JSON: the results of its runs. The last
        answer repeats. Only a Lambda target with ``wait`` and an ``aws_api`` target with ``result`` return
        something."""
        with _refusals():
            name = self.schedule(schedule)
            _, definition = lookup.existing(self.ports, name)
            workflow = lookup.workflow_of(self.ports, definition.workflow)
        target = workflow.target if workflow is not None else None
        returns = target is not None and target.returns(target.model_dump())
        if not answers or not returns:
            expected = "expected an answer and a schedule with a Lambda target that waits, or a call with result"
            raise WrongUsage(f"{expected}, got {len(answers)} for {naming.plain(name)}", "schedule")
        self.targets.script.set_returned(name, answers)

    def runs_take(self, span: str, schedule: str | None = None) -> None:
        """Runs that begin from now on succeed by themselves after a span, such as ``20m``: those of a schedule, or all.
        A test may still end them earlier. Runs of workers go on until the test ends them."""
        with _refusals():
            name = naming.plain(self.schedule(schedule)) if schedule is not None else ""
            self._spans[name] = duration(span, "span")

    # -- time ------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        return moment(self.clock.now())

    def advance(self, span: str) -> None:
        """Move the clock by a span: ``advance("1h30m")``. All work that falls due happens at its instant."""
        with self.acting():
            self._pass_until(self.clock.now() + duration(span, "span"))

    def advance_to(self, at: str | datetime) -> None:
        """Move the clock to an instant. Raises `ApiRefused` for an instant in the past."""
        with self.acting():
            end = _instant(at)
            if end < self.clock.now():
                raise errors.invalid("at", f"an instant after {iso(self.clock.now())}", iso(end))
            self._pass_until(end)

    def _pass_until(self, end: Instant) -> None:
        self.pass_until(end, lambda: next_work(self._tables, self.ports.settings))

    # -- results ---------------------------------------------------------------------------------------------------

    def runs(self, schedule: str | None = None, /, **partition: Any) -> list[Run]:
        """The runs of a schedule, or of all schedules, also of deleted ones, in the order of their starts: one item for
        each attempt, and for each event of a large fire. ``partition`` selects the runs with these values."""
        found = [
            event
            for name in self._with_history(schedule)
            for row in lookup.every(partial(self.ports.runs.runs, "schedule", name))
            for event in fires.runs_of(row)
        ]
        ordered = sorted(found, key=lambda row: (row.claimed_at, row.created_at, row.spread, row.run_id, row.attempt))
        runs = [Run(self, row.run_id, row.attempt) for row in ordered]
        return self._matching(runs, partition)

    def run(self, schedule: str, /, **partition: Any) -> Run:
        """The one run of a schedule. Raises AssertionError, with the reason, if there is none or more than one."""
        runs = self.runs(schedule, **partition)
        if len(runs) == 1:
            return runs[0]
        assert runs, f"expected a run of {schedule}, got none: {self.why(schedule, **partition)}"
        raise AssertionError(f"expected one run of {schedule}, got {len(runs)}: {runs}")

    def jobs(self, schedule: str | None = None, /, **partition: Any) -> list[Job]:
        """The waiting jobs, without the fires whose instant is in the future: one item for each event of a large
        fire."""
        now = self.clock.now()
        found = [
            row
            for name in self._schedules(schedule)
            if (state := self.ports.rows.get(ScheduleState, name)) is not None
            for row in lookup.every(partial(self.ports.jobs.jobs, name, state.generation))
            if not (row.closed or (check.is_prepared(row) and (row.due_at or 0) > now))
        ]
        events = [event for row in found for event in (bundles.events(row) if row.is_bundle else (row,))]
        jobs = [Job(self, row.job_id) for row in events]
        return self._matching(jobs, partition)

    def job(self, schedule: str, /, **partition: Any) -> Job:
        """The one waiting job of a schedule. Raises AssertionError if there is none or more than one."""
        jobs = self.jobs(schedule, **partition)
        assert len(jobs) == 1, f"expected one waiting job of {schedule}, got {jobs or self.why(schedule)}"
        return jobs[0]

    def notices(self) -> list[Notice]:
        """The notices to people that targets got so far, in order."""
        return [seen.notice_of(at, run) for at, run in self.targets.notices()]

    def records(self, schedule: str | None = None, /) -> list[Record]:
        """Work that never became a run, such as aborted jobs and skipped fires, in the order of recording. The
        ``count`` of a record is how many fires, or events of a large fire, it stands for."""
        found = [
            row
            for name in self._with_history(schedule)
            for row in lookup.every(partial(self.ports.runs.records, "schedule", name))
        ]
        ordered = sorted(found, key=lambda row: (row.recorded_at, row.id))
        return [
            Record(naming.plain(row.schedule), row.kind, row.reason.text, moment(row.recorded_at), row.count)
            for row in ordered
        ]

    def dag_runs(self, dag: str, /, **partition: Any) -> list[DagRun]:
        """The runs of a DAG in the order of their starts. ``partition`` selects those of these values."""
        with _refusals():
            name = naming.dag_of(self.ports, dag, self.namespace, self.app)
        starts = self.runs(ids.dag_start(name), **partition)
        return [DagRun(self, name, run.id) for run in starts if run.attempt == 1]

    def dag_run(self, dag: str, /, **partition: Any) -> DagRun:
        """The one run of a DAG. Raises AssertionError, with the reason, if there is none or more than one."""
        found = self.dag_runs(dag, **partition)
        if len(found) == 1:
            return found[0]
        assert found, f"expected a run of DAG {dag}, got none: {self.why(dag, **partition)}"
        raise AssertionError(f"expected one run of DAG {dag}, got {len(found)}: {found}")

    def explain(self) -> str:
        """What ran, what waits and why, schedule by schedule, in one text; pytest shows it for a test that fails."""
        return explanation.of_app(self)

    def why(self, schedule: str, /, **partition: Any) -> str:
        """Why a schedule has not run, as ``sluice why`` explains it. ``partition`` selects jobs with these values."""
        name = self.schedule(schedule)
        if not partition:
            with _refusals():
                return explain.why_schedule(self.ports, name)["why"].text
        waiting = [job.why for job in self.jobs(name, **partition)]
        if waiting:
            return "; ".join(dict.fromkeys(waiting))
        ran = [f"it ran at {iso_second(run.at)} and is {run.state}" for run in self.runs(name, **partition)]
        return "; ".join(ran) or f"no event of {_values(partition)} has arrived; {self.why(name)}"

    def next_fires(self, schedule: str, count: int = 1) -> list[datetime]:
        """The instants of the next fires of a schedule with a time trigger. It has none while it is disabled."""
        name = self.schedule(schedule)
        with _refusals():
            state, definition = lookup.existing(self.ports, name)
        timer = self.ports.rows.get(Timer, name) if state.mode == "enabled" else None
        fires = upcoming.preview(definition, self.clock.now(), count, timer) if timer is not None else []
        return [moment(at) for at in fires]

    def next_step(self, end: Instant) -> Instant:
        """The next instant at which hints are handled, or a run ends by itself."""
        now = self.clock.now()
        return min([super().next_step(end), *(at for at, _ in self._ends if at > now)])

    def settle(self, invoke: Callable[[Act], Any] = lambda act: act()) -> None:
        """Handle all hints that are due. A run begins as soon as its target has accepted it, and ends after its span if
        the test has set one."""
        super().settle(invoke)
        while begun := self.targets.take_begun():
            for run in begun:
                self._note_begun(run)
            super().settle(invoke)
        ended = [run for at, run in self._ends if at <= self.clock.now()]
        self._ends = [end for end in self._ends if end[0] > self.clock.now()]
        for each in ended:
            if each.state == "RUNNING":
                each.succeed()

    def _note_begun(self, run: RunRow) -> None:
        now, target = self.clock.now(), self.targets.played(run.target_kind)
        complete.advance_run(self.ports, run.run_id, run.attempt, RunUpdate("RUNNING", now, target_id=target.find(run)))
        span = self._spans.get(naming.plain(run.schedule), self._spans.get(""))
        if span is not None:
            self._ends.append((now + span, Run(self, run.run_id, run.attempt)))

    # -- names -----------------------------------------------------------------------------------------------------

    def schedule(self, name: str) -> str:
        """The full name of a schedule. ``nightly`` may be a DAG, and ``nightly/load`` one of its nodes: then it is the
        schedule to which Sluice compiles it. Raises `ApiRefused`, with the names that exist, if there is none."""
        with _refusals():
            return naming.schedule_of(self.ports, name, self.namespace, self.app)

    def _changed(self, schedule: str) -> str:
        """The full name of a schedule or a DAG that a user changes. The API refuses a change of a node alone."""
        name = self.schedule(schedule)
        if ids.is_dag_node(name):
            raise errors.owned_by_dag(ids.plain(name).rpartition(".")[2], ids.dag_of(name).rpartition(".")[2])
        return name

    def acting(self) -> _Acting:
        """The context of a request or an event. It converts errors of the service to `ApiRefused`, and handles the
        consequences of the request at once."""
        return _Acting(self)

    @staticmethod
    @contextmanager
    def quiet() -> Iterator[None]:
        """A context in which the service logs errors only."""
        before = logger.log_level
        logger.setLevel("ERROR")
        try:
            yield
        finally:
            logger.setLevel(before)

    def _schedules(self, schedule: str | None) -> list[str]:
        known = list(naming.schedules_in(self.ports, self.namespace))
        return known if schedule is None else self._named(schedule, known)

    def _with_history(self, schedule: str | None) -> list[str]:
        """The same, with the deleted schedules of which there is a run or a record."""
        history = (row for table, row in self._tables.rows() if table == "RunsTable" and "schedule" in row)
        named = {str(row["schedule"]["S"]) for row in history}
        known = list({name: None for name in [*self._schedules(None), *sorted(named)] if self._is_own(name)})
        return known if schedule is None else self._named(schedule, known)

    def _named(self, schedule: str, known: list[str]) -> list[str]:
        """The schedules that a test names: one, or of the node of a DAG one for each graph that the DAG has had."""
        full = self.schedule(schedule)
        if not ids.is_of_dag(full):
            return [full]
        return [name for name in known if ids.is_of_dag(name) and naming.plain(name) == naming.plain(full)]

    def _matching(self, found: list[Work], partition: Mapping[str, Any]) -> list[Work]:
        """The work with these partition values. Raises `ApiRefused` for a key that no partition has."""
        matching = [work for work in found if work.matches(partition)]
        if partition and not matching:
            with _refusals():
                naming.check_keys(self.ports, partition)
        return matching

    def _is_own(self, schedule: str) -> bool:
        return schedule.partition(".")[0] == self.namespace

    def _dataset(self, name: str) -> tuple[str, Dataset]:
        return naming.dataset_of(self.ports, name, self.namespace)

    def _place(self, where: str, key: str) -> tuple[str, str]:
        if where.startswith("s3://"):
            bucket, _, path = where.removeprefix("s3://").partition("/")
            return LAKE if bucket == "lake" else bucket, path + key
        with _refusals():
            _, dataset = self._dataset(where)
        return dataset.bucket, dataset.prefix + key

    def install(self, content: Mapping[str, Any]) -> None:
        """Add the buckets, EMR applications and roles that the document names to the settings of the installation."""
        settings = self.ports.settings
        found = {
            "watched_buckets": {*settings.watched_buckets, *_values_of(content, "bucket")} - {"lake"},
            "emr_application_ids": {
                *settings.emr_application_ids,
                *_values_of(content, "application_id", "application"),
            },
            "emr_role_arns": {*settings.emr_role_arns, *_values_of(content, "execution_role_arn")},
        }
        changed: dict[str, Any] = {name: tuple(sorted(values)) for name, values in found.items()}
        self.ports = replace(self.ports, settings=replace(settings, **changed))


class _Acting:
    def __init__(self, app: App) -> None:
        self._app, self._refusals = app, _refusals()

    def __enter__(self) -> None:
        self._refusals.__enter__()

    def __exit__(self, *raised: Any) -> bool | None:
        if raised[0] is None:
            self._app.settle()
        return self._refusals.__exit__(*raised)


@contextmanager
def _refusals() -> Iterator[None]:
    """A context that converts errors of the service to the errors of its API."""
    try:
        yield
    except ValidationError as error:
        raise _refused(errors.from_validation(error)) from None
    except errors.SluiceError as error:
        raise _refused(error) from None


def _checked(model: type[Document], content: Mapping[str, Any]) -> Document:
    """The document, or the refusal of the API, with the same hints."""
    try:
        return model.model_validate(content, context=SENT)
    except ValidationError as error:
        raise errors.from_validation(error, model) from None


def _texts(partition: Mapping[str, Any] | None) -> dict[str, str] | None:
    return None if partition is None else {key: str(value) for key, value in partition.items()}


def _refused(error: errors.SluiceError) -> ApiRefused:
    refused = refusal(error.status, error.code, error.message, error.field, error.hint)
    refused.problems = tuple(map(problem_of, error.each))
    for name, text in (("field", error.field), ("hint", error.hint)):
        if text:
            refused.add_note(f"{name}: {text}")
    return refused


def problem_of(error: errors.SluiceError) -> Problem:
    return Problem(error.message, error.field, error.hint, error.code)


def _instant(at: str | datetime) -> Instant:
    return parse_instant(at if isinstance(at, str) else at.isoformat(), "at")


def iso_second(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _values(partition: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in partition.items())


def _document(source: Source, values: Mapping[str, str] | None) -> dict[str, Any]:
    if isinstance(source, str | os.PathLike):
        return documents.load(os.fspath(source), values)
    return copy.deepcopy(dict(source if isinstance(source, Mapping) else source.document()))


def _values_of(content: object, *fields: str) -> set[str]:
    """The texts that these fields have anywhere in a document."""
    if isinstance(content, Mapping):
        own = {content[field] for field in fields if isinstance(content.get(field), str)}
        return own.union(*(_values_of(each, *fields) for each in content.values()))
    if isinstance(content, list):
        return set().union(*(_values_of(each, *fields) for each in content))
    return set()
