"""Mend the tables of a frozen installation, after they were restored to different instants up to ten minutes apart.

The rows of three tables are compared with each other, with job runs of EMR, contexts of runs in S3, and objects of
datasets. All of these outlive a restore of the tables. `docs/guarantees.md` says what no comparison shows. A repair
that broke off is run again: it finds what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from chalicelib.core import ids, states
from chalicelib.core.backfills import backfill, reprocess
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.build import status_event
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.fires.fire import fire_event
from chalicelib.core.instants import SECOND, Instant, iso
from chalicelib.core.jobs import claim
from chalicelib.core.limits import names, returns
from chalicelib.core.repair import fires
from chalicelib.core.repair.limits import recounted
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import AppliedEvent, CountedObject, Event, Partition, PostedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Pointer, Run
from chalicelib.core.rows.schedule import HISTORY, WAKE
from chalicelib.core.runs import complete, queued
from chalicelib.core.states import GATHERING_MODES, JobKind
from chalicelib.core.triggers.event import custom_key
from chalicelib.core.why import Why
from chalicelib.core.writes import Delete, DeleteJob, Put, Replace, Write
from chalicelib.flow import facts as facts_of
from chalicelib.flow import lookup
from chalicelib.flow.archive.export import pages_of
from chalicelib.flow.backfills.plan import Entries
from chalicelib.flow.ingest import apply, objects
from chalicelib.flow.ingest.objects import version_name
from chalicelib.flow.limits import policies
from chalicelib.flow.repair.stock import Outbox, Stock, attempt_of
from chalicelib.flow.schedules import pauses
from chalicelib.ports import MAX_CONFLICTS, Begun, Changed, Copies, Ports

Unknown = Literal["adopt", "cancel", "leave"]
WHY = "held by a repair"


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference: its kind, the name of what differs, and what the repair does about it, in words."""

    kind: str
    name: str
    done: str


@dataclass
class Repair:
    """One repair. ``since`` is an instant up to which all three tables agree; ``began`` are the runs of EMR since then.
    ``unknown`` says what becomes of those that no table has. A dry run reports and changes nothing."""

    ports: Ports
    copies: Copies
    since: Instant
    began: Iterable[Begun]
    unknown: Unknown = "adopt"
    dry_run: bool = False
    findings: list[Finding] = field(default_factory=list)

    def run(self) -> list[Finding]:
        """Compare and mend, in an order in which no step needs a later one. Returns what was found."""
        self.now = self.ports.clock.now()
        self.stock = Stock.read(self.copies, self.since)
        self.begun = list(self.began)
        self.begun_steps()
        self.runs_at_emr()
        self.lost_backfills()
        self.next_attempts()
        self.closed_schedules()
        self.applied_events()
        self.permits_of_jobs()
        self.waiting_jobs()
        self.backfills()
        self.missing_fires()
        self.open_outboxes()
        self.statuses()
        self.limits()
        return self.findings

    def begun_steps(self) -> None:
        """The backfill of each step of a re-processing that has runs. A run that ends expects it."""
        names = {named[0] for begun in self.begun if (named := attempt_of(begun.name)) is not None} | self.stock.ended
        for row in self.stock.reprocesses:
            for number in range(len(row.steps) if row.state == "RUNNING" else 0):
                made = reprocess.backfill_of(row, number, self.now)
                shown = any(backfill.job_id(made, index, made.generation) in names for index in range(made.total))
                if shown and self.ports.rows.get(Backfill, made.schedule, made.id) is None:
                    self._found("step", f"{row.id} {number}", f"goes on: {made.schedule} has runs of it")
                    self.stock.backfills.append(made)
                    self._write(Put(made))

    def runs_at_emr(self) -> None:
        """Adopt or cancel the job runs of EMR that no table has, and tell a run its id at EMR."""
        for begun in self.begun:
            named = attempt_of(begun.name)
            if named is None:
                continue
            run = self.stock.runs.get(named)
            if run is None and (run := self.ports.rows.get(Run, *named)) is None:
                self._adopt(begun, *named)
            elif run.target_id is None and not states.is_terminal(run.state):
                self._found("id at EMR", begun.name, "stored, so that the run is not called again")
                self._known(replace(run, target_id=begun.target_id, lease_until=None, queued_in=None, rank=None,
                                    wake_at=self.now, rev=run.rev + 1), begun)  # fmt: skip

    def _adopt(self, begun: Begun, run_id: str, attempt: int) -> None:
        made = self._made(begun, run_id, attempt)
        if made is None:
            self._found("unknown run", begun.name, f"left alone: its schedule is gone ({begun.target_id})")
            return
        if self.unknown == "leave":
            self._found("unknown run", begun.name, f"left alone, as requested ({begun.target_id})")
            return
        done = "adopted" if self.unknown == "adopt" else "to be cancelled"
        self._found("unknown run", begun.name, f"{done} ({begun.target_id})")
        if self.unknown == "cancel":
            made = replace(made, cancel=True, reason=Why.of("repaired", "cancelled by a repair: no table had this run"))
        self.stock.ended.add(run_id)
        self._known(made, begun, new=True)

    def _made(self, begun: Begun, run_id: str, attempt: int) -> Run | None:
        """The run of a job run, as its claim would have built it at that time. None without a schedule."""
        parsed = ids.parse_job_id(run_id)
        if parsed is None:
            return None
        context = self._context(run_id) or {}
        fired = next((each for each in context.get("events", ()) if each["kind"] == "time"), None)
        kind: JobKind = "retry" if attempt > 1 else "fire" if fired is not None else "gathering"
        key, why = (
            (parsed.schedule, parsed.generation, sort_keys.GATHERING),
            Why.of("repaired", "found at EMR by a repair"),
        )
        job = Job(*key, run_id, kind, "PENDING_LAUNCH", begun.at, attempt=attempt, reason=why)
        job = replace(job, correlation=self._correlation(context))
        if fired is not None:
            event = Event(fired["id"], "time", f"time:{parsed.schedule}", fired["instant"], fired["instant"])
            job = replace(job, due_at=event.instant, accepted_at=event.instant, event=event)
        job = self._entry_of(run_id, begun) or job
        job = replace(job, attempt=attempt)
        facts = facts_of.read(self.ports, job)
        if facts.schedule_state is None or facts.schedule is None or facts.workflow is None:
            return None
        asks = facts.asks(parsed.schedule.partition(".")[0])
        taken = tuple(ask.limit_name for ask in asks if not names.is_admission(ask.limit_name))
        uri = self.ports.payloads.context_uri(run_id)
        run = claim.build_run(job, facts, taken, uri, begun.at, (), returns.units_of(asks, 0))
        properties = context.get("properties", run.request.properties)
        run = replace(run, named=_named(context, run))
        return replace(run, generation=parsed.generation, target_id=begun.target_id, calls=1, wake_at=self.now,
                       start_requested_at=begun.at, request=replace(run.request, properties=properties))  # fmt: skip

    def _correlation(self, context: Mapping[str, Any]) -> Mapping[str, str] | None:
        """The correlation of a run. The row of its DAG run says whether its round is that of a node alone."""
        found = rounds.of_context(context)
        value = rounds.which(found)
        own = rounds.parse(value) if value is not None else None
        if found is None or own is None or not own.alone:
            return found
        row = self.ports.rows.get(DagRun, own.dag_run)
        reruns = row.reruns if row is not None else ()
        if len(reruns) <= own.number - 2 or reruns[own.number - 2]["what"] == "only":
            return found
        return {**found, rounds.KEY: str(own._replace(alone=False))}

    def _known(self, run: Run, begun: Begun, new: bool = False) -> None:
        self.stock.runs[run.run_id, run.attempt] = run
        pointer = Pointer(begun.target_id, run.run_id, run.attempt, self.now + HISTORY)
        self._write(Put(run) if new else Replace(run), Put(pointer))

    def lost_backfills(self) -> None:
        """The runs of a backfill that no table has go on by themselves: a run that ends wakes its backfill."""
        for key, run in list(self.stock.runs.items()):
            if run.backfill is None or (states.is_terminal(run.state) and run.state != "RETRYING"):
                continue
            if self.ports.rows.get(Backfill, run.schedule, run.backfill) is None:
                done = f"lost: its run {run.run_id} goes on by itself"
                self._found("backfill", f"{run.schedule} {run.backfill}", done)
                self.stock.runs[key] = alone = replace(run, backfill=None, rev=run.rev + 1)
                self._write(Replace(alone))

    def next_attempts(self) -> None:
        """A run that waits for its next attempt has the job of it, and no other run has one."""
        for job in [job for job in self.stock.jobs.values() if job.traits.retries]:
            before = self.stock.runs.get((job.job_id, job.attempt - 1))
            if before is None or before.state != "RETRYING":
                self._found("next attempt", f"{job.job_id}-{job.attempt}", "deleted: its run has not failed yet")
                self._drop(job)
        waiting = {(job.job_id, job.attempt) for job in self.stock.jobs.values() if job.traits.retries}
        for run in list(self.stock.runs.values()):
            after = (run.run_id, run.attempt + 1)
            known = after in waiting or after in self.stock.runs or self.ports.rows.get(Run, *after) is not None
            if run.state == "RETRYING" and not known and not self._is_elsewhere(run):
                self._found("next attempt", f"{run.run_id}-{after[1]}", "created again: its job was lost")
                self._create(complete.retry_of(run, run.reason, self.now))

    def _is_elsewhere(self, run: Run) -> bool:
        """Whether the namespace of a run has moved, and left this row as history. The catalog has a state of each
        schedule, also of a deleted one."""
        return run.schedule not in self.stock.schedule_states

    def closed_schedules(self) -> None:
        """Hold each schedule whose state may be older than a change that another table shows."""
        newer: dict[str, int] = {}
        for job in [*self.stock.tombstones, *self.stock.jobs.values()]:
            newer[job.schedule] = max(job.generation, newer.get(job.schedule, 0))
        for schedule, row in sorted(self.stock.schedule_states.items()):
            closed = any(
                job.schedule == schedule and job.generation == row.generation and job.sort_key == sort_keys.GATHERING
                for job in self.stock.tombstones
            )
            later = newer.get(schedule, 0) > row.generation
            if row.mode not in GATHERING_MODES or not (closed or later):
                continue
            if row.mode != "hold":
                what = "replaced or enabled again" if later else "closed"
                self._found("schedule", schedule, f"held: it was {what} after the instant of the catalog; decide")
                if not self.dry_run:
                    pauses.pause(self.ports, schedule, "hold", "sluice repair", reason=WHY)
            self._reopen(schedule, row.generation)

    def _reopen(self, schedule: str, generation: int) -> None:
        """Let a held generation gather again: a closed one would count nothing after a resume."""
        for job in [
            each for each in self.stock.tombstones if (each.schedule, each.generation) == (schedule, generation)
        ]:
            self.stock.tombstones.remove(job)
            if job.job_id:
                again = replace(job, closed=False, wake_at=self.now, leases=0, rev=job.rev + 1)
                self.stock.keep(again)
                self._write(Replace(again))
            else:
                self._write(DeleteJob(job))

    def applied_events(self) -> None:
        """The marks of events agree with the jobs and runs that counted them."""
        self.again: list[AppliedEvent] = []
        for run in list(self.stock.runs.values()):
            counted = self._counted(run)
            if counted is None:
                continue
            marks = {mark.event.id: mark for mark in self.stock.applied.get(run.run_id, ())}
            for described in counted:
                if described["id"] not in marks:
                    self._mark(run, described)
            wanted = {described["id"] for described in counted}
            self._forget([mark for mark in marks.values() if mark.event.id not in wanted], "its run began without it")
        known = {job.job_id for job in [*self.stock.jobs.values(), *self.stock.tombstones]}
        for job_id, marks_of in list(self.stock.applied.items()):
            if job_id not in self.stock.ended and job_id not in self.stock.records and job_id not in known:
                self._forget(marks_of, "its job is lost")

    def _counted(self, run: Run) -> list[Mapping[str, Any]] | None:
        """The events in the context of a run since the instant; None if it has no list of events that it gathered."""
        if run.claimed_at < self.since or run.event is not None or not run.traits.of_events:
            return None
        if self._is_elsewhere(run):
            return None
        context = self._context(run.run_id)
        if context is None:
            why = "missing or cut off: what its run has counted may count again; copy the old control bucket first"
            self._found("context", run.run_id, why)
            return None
        if context.get("manifest") is not None or run.attempt > 1:
            return None
        return list(context.get("events", ()))

    def _context(self, run_id: str) -> Mapping[str, Any] | None:
        """The stored context of a run; None if there is none, or if it is no JSON."""
        try:
            return self.ports.payloads.context(run_id)
        except ValueError:
            return None

    def _mark(self, run: Run, described: Mapping[str, Any]) -> None:
        event = self.stock.events().get(described["id"]) or _event_of(described, run)
        self._found("event", event.id, f"marked as counted by run {run.run_id}")
        mark = AppliedEvent(run.schedule, run.generation, event, run.run_id)
        self.stock.applied[run.run_id].append(mark)
        self._write(Put(mark))

    def _forget(self, marks: list[AppliedEvent], why: str) -> None:
        for mark in list(marks):  # they may be those of the stock itself
            self._found("event", mark.event.id, f"counts again for {mark.schedule}: {why}")
            self.stock.applied[mark.event_job].remove(mark)
            self.again.append(mark)
            self._write(Delete(mark))

    def permits_of_jobs(self) -> None:
        """Jobs leave their queues and hold nothing: they request their permits again. Those of a generation that the
        catalog has closed are checked, and dropped."""
        for job in list(self.stock.jobs.values()):
            state = self.stock.schedule_states.get(job.schedule)
            is_over = state is None or state.generation > job.generation
            if job.queued_in is not None or job.held or is_over:
                free = replace(job, queued_in=None, rank=None, held=(), units=0, wake_at=self.now, rev=job.rev + 1)
                self.stock.keep(free)
                self._write(Replace(free))

    def waiting_jobs(self) -> None:
        """Delete the jobs that have a run or a record, then apply again the events that count for no job."""
        for job in list(self.stock.jobs.values()):
            later = (job.job_id, job.attempt) in self.stock.runs
            later = later or self.ports.rows.get(Run, job.job_id, job.attempt) is not None
            recorded = job.traits.leaves_record and job.job_id in self.stock.records
            if later or recorded:
                self._found("job", job.job_id, f"deleted: it has {'a run' if later else 'a record'} already")
                self._drop(job)
        for mark in sorted(self.again, key=lambda mark: (mark.event.accepted_at, mark.event.id)):
            if not self.dry_run:
                rows = self._subscriptions(mark.event.key, mark.schedule, mark.generation)
                apply.apply_event(self.ports, mark.event, rows, self.now)

    def _subscriptions(self, key: str, schedule: str, generation: int) -> list[Any]:
        rows = lookup.every(partial(self.ports.catalog.subscriptions, key))
        return [row for row in rows if (row.schedule, row.generation) == (schedule, generation) and row.leaf != WAKE]

    def _entry_of(self, run_id: str, begun: Begun) -> Job | None:
        """The job of the entry of a backfill that has become a run; None for another run."""
        for row in self.stock.backfills:
            if run_id.startswith(f"{row.schedule}."):
                for index in range(row.total):
                    if backfill.job_id(row, index, row.generation) == run_id:
                        return self._entry(row, index, begun.at)
        return None

    def _entry(self, row: Backfill, index: int, at: Instant) -> Job | None:
        """The job of an entry of a backfill, as it was created. None if the run that it repeats is no longer stored."""
        if row.run is not None:
            attempts = self.ports.runs.attempts(row.run)
            return backfill.job_of_run(row, attempts[-1], at) if attempts else None
        schedule = lookup.definition_of(self.ports, self.stock.schedule_states.get(row.schedule))
        by = schedule.by if schedule is not None else ()
        return backfill.job_of(row, index, Entries(self.ports, row).event(index), by, at, self.now)

    def backfills(self) -> None:
        """Each entry of a backfill that has begun has a job, a run or a record, and each backfill is checked again."""
        shown = self.stock.ended | self.stock.records | {job.job_id for job in self.stock.jobs.values()}
        for row in self.stock.backfills:
            if row.ended_at is not None:
                continue
            ids_of = {index: backfill.job_id(row, index, row.generation) for index in range(row.total)}
            begun = max((index + 1 for index in range(row.next, row.total) if ids_of[index] in shown), default=row.next)
            if begun > row.next:
                self._found("backfill", f"{row.schedule} {row.id}", f"entries {row.next} to {begun - 1} have begun")
            live = {**row.live, **{str(index): row.generation for index in range(row.next, begun)}}
            self._write(Replace(replace(row, next=begun, live=live, leases=0, wake_at=self.now, rev=row.rev + 1)))
            for entry, generation in live.items():
                lost = generation == row.generation and ids_of[int(entry)] not in shown
                job = self._entry(row, int(entry), self.now) if lost and row.state == "RUNNING" else None
                if job is not None:
                    self._found("backfill", job.job_id, "created again: its job was lost")
                    self._create(job)
        for step in self.stock.reprocesses:
            self._write(Replace(replace(step, wake_at=self.now, rev=step.rev + 1)))

    def missing_fires(self) -> None:
        """Write the fires again that a timer has left behind, and that nothing shows."""
        for timer in self.stock.timers:
            row = self.stock.schedule_states.get(timer.schedule)
            schedule = lookup.definition_of(self.ports, row)
            if row is None or schedule is None or row.generation != timer.generation:
                continue
            # Those that were due until an update that kept the trigger belong to the generation before.
            began = row.since + 1 if row.former else row.since
            for fire in fires.since(timer, schedule, max(self.since, began)):
                if not self.stock.has(fire) and not self._is_counted(fire):
                    self._found("fire", fire.job_id, f"written again: nothing shows the fire of {iso(fire.created_at)}")
                    self._create(fire)

    def _is_counted(self, fire: Job) -> bool:
        """Whether a fire was an event of a job, under the mark of its event."""
        return bool(self.ports.jobs.applied([(fire.schedule, fire.generation, fire_event(fire).id)]))

    def open_outboxes(self) -> None:
        """Apply every event since the instant again: a schedule that has it is not changed. Register the objects that
        are in the buckets, and in no table."""
        for mark in [mark for marks in self.stock.applied.values() for mark in marks]:
            if mark.event.accepted_at >= self.since and mark.event.id not in self.stock.outboxes:
                outbox = self._outbox_of(mark.event)
                if outbox is not None:
                    self._found("event", mark.event.id, "registered again: only the schedules that counted it had it")
                    self.stock.outboxes[mark.event.id] = outbox
                    self._write(Put(outbox))  # before the objects are matched, which would count again otherwise
        closed = [each for each in self.stock.outboxes.values() if each.wake_at is None or each.cursor is not None]
        if closed:
            self._found("outboxes", f"{len(closed)} events", "applied again to the schedules without them")
        if self.dry_run:
            return
        for dataset in self._datasets():
            try:
                for changed in self.ports.lake.changed(dataset.bucket, dataset.prefix, self.since - SECOND):
                    self._match(dataset, changed)
            except Exception as error:  # a bucket that cannot be listed
                self._left_alone("dataset", f"s3://{dataset.bucket}/{dataset.prefix}", error)
        # Last, because an object that is matched applies its event and closes the outbox. So a repeated repair finds
        # each outbox open.
        for outbox in (self.stock.outboxes | Stock.read(self.copies, self.since).outboxes).values():
            opened = replace(outbox, cursor=None, wake_at=self.now)
            self._write(Put(replace(opened, expires_at=None) if isinstance(opened, PostedEvent) else opened))

    def _match(self, dataset: Dataset, changed: Changed) -> None:
        created = ObjectCreated(dataset.bucket, changed.key, changed.at, changed.size, changed.etag)
        try:
            objects.match_object(self.ports, created)
        except Exception as error:  # what others have written may be anything, and must not stop the repair
            self._left_alone("object", f"s3://{dataset.bucket}/{changed.key}", error)

    def _left_alone(self, kind: str, name: str, error: Exception) -> None:
        why = error.message if isinstance(error, SluiceError) else f"{type(error).__name__}: {error}"
        self._found(kind, name, f"left alone: {why}; mend it, and repair again")

    def _datasets(self) -> Iterator[Dataset]:
        for copy in pages_of(self.copies, "catalog"):
            row = copy.row
            if isinstance(row, Definition) and row.kind == "dataset":
                yield Dataset.model_validate(row.document)

    def _outbox_of(self, event: Event) -> Outbox | None:
        """The row that registers an event, made from the event itself; None for an event of another kind."""
        if event.kind == "event":
            return PostedEvent(event)
        stored = self.ports.rows.get(Definition, "dataset", event.dataset) if event.dataset else None
        if stored is None or event.dataset is None:
            return None
        dataset = Dataset.model_validate(stored.document)
        if event.kind == "partition" and event.partition is not None and dataset.format == "files":
            values = tuple(event.partition[key] for key in dataset.keys)
            if event.id != ids.event_id("partition", event.dataset, *values):
                return self._version_of(dataset, event)
            if self.ports.rows.get(Partition, event.dataset, values) is None:
                return Partition(event.dataset, values, event, "")
        if event.kind == "size" and event.path is not None:
            key = event.path.removeprefix(f"s3://{dataset.bucket}/")
            return CountedObject(event.dataset, key, "", event)
        return None

    def _version_of(self, dataset: Dataset, event: Event) -> CountedObject | None:
        """The row of the version of a flag or manifest by which a partition was written again; None if it is stored."""
        flag = dataset.ready.done_flag or dataset.ready.manifest or ""
        key = (event.path or "").removeprefix(f"s3://{dataset.bucket}/") + flag
        name = version_name(event.instant - event.instant % SECOND)
        stored = self.ports.rows.get(CountedObject, str(event.dataset), key, name)
        return CountedObject(str(event.dataset), key, name, event) if stored is None else None

    def statuses(self) -> None:
        """Announce the statuses of the runs since the instant again."""
        for run in list(self.stock.runs.values()):
            due = []
            if run.running_seen_at is not None and run.running_seen_at >= self.since:
                due.append("STARTED")
            status = states.PROGRAM_STATUS.get(run.state)
            if states.is_terminal(run.state) and status and (run.state_at or 0) >= self.since:
                due.append(status)
            due = [each for each in due if each not in run.announce]
            wanted = [
                each for each in due if self.ports.catalog.subscriptions(status_event(run, each).key, 1, None).items
            ]
            if wanted:
                self._found("status", f"{run.run_id}-{run.attempt}", f"announced again: {', '.join(wanted)}")
                later = replace(complete.add_statuses(run, wanted, self.now), cursor=None)
                self.stock.runs[run.run_id, run.attempt] = later
                self._write(Replace(later))

    def limits(self) -> None:
        """Empty the queues, and count what runs hold."""
        for run in list(self.stock.runs.values()):
            if run.queued_in is not None:
                self.stock.runs[run.run_id, run.attempt] = off = queued.off_queue(run, self.now)
                self._write(Replace(off))
        if not self.dry_run:
            self.copies.delete(self.stock.waiters)
        spacings = {}
        for name in self.stock.limits:
            policy = policies.policy_of(self.ports, name.partition(":")[2]) if name.startswith("policy:") else None
            if policy is not None:
                spacings[name] = policy.pace(name.partition(":")[2]).spacing
        for state in recounted(self.stock.limits, self.stock.runs.values(), spacings).values():
            before = self.stock.limits.get(state.limit_name)
            if before is None or (before.active, set(before.starts)) != (state.active, set(state.starts)):
                was = 0 if before is None else before.active
                self._found("limit", state.limit_name, f"recounted: {state.active} in use instead of {was}")
            if not self.dry_run:
                self.copies.put_limit(state)

    def _drop(self, job: Job) -> None:
        self.stock.drop(job)
        self._write(DeleteJob(job))

    def _create(self, job: Job) -> None:
        self.stock.keep(job)
        self._write(Put(job))

    def _found(self, kind: str, name: str, done: str) -> None:
        self.findings.append(Finding(kind, name, done))

    def _write(self, *plan: Write) -> None:
        if self.dry_run:
            return
        for _ in range(MAX_CONFLICTS):
            if self.ports.ledger.commit(plan) is None:
                return
        raise RuntimeError(f"expected a frozen installation, got a change of {plan[0]}; freeze it, and repair again")


def _named(context: Mapping[str, Any], run: Run) -> tuple[Event, ...] | None:
    """The events in the context of a run besides its own. None if the run has gathered its events or has no context."""
    own = run.event
    if own is None or "events" not in context:
        return None
    return tuple(_event_of(described, run) for described in context["events"] if described["id"] != own.id)


def _event_of(described: Mapping[str, Any], run: Run) -> Event:
    """An event as far as the context of its run describes it."""
    names = ("partition", "dataset", "path", "workflow", "run_id", "status", "payload")
    known = {name: described[name] for name in names if name in described}
    known |= {own: described[name] for name, own in (("bytes", "size"), ("snapshot", "payload")) if name in described}
    accepted = run.accepted_at if run.accepted_at is not None else run.claimed_at
    key = custom_key(run.schedule.partition(".")[0], described["type"]) if described["kind"] == "event" else ""
    return Event(described["id"], described["kind"], key, described.get("instant", accepted), accepted, **known)
