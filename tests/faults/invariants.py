"""Checks the tables: what must hold at every moment between two writes, and what must hold once all work has ended.

The checks read the stored rows, not the results of the flows under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from chalicelib.aws.tables import items
from chalicelib.core import ids, states
from chalicelib.core.access.grants import MISSING
from chalicelib.core.constraints import approval
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.fires import bundles
from chalicelib.core.instants import MINUTE, SECOND, Instant, iso, parse_instant
from chalicelib.core.jobs.check import Wait, decide
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names as limit_names
from chalicelib.core.limits import returns
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.event import AppliedEvent
from chalicelib.core.rows.grants import waiters_key
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Subscription, Timer, Version
from chalicelib.core.runs import counting
from chalicelib.core.runs import queued as waiting_of
from chalicelib.core.schedules import lifecycle
from chalicelib.core.triggers import tree
from chalicelib.flow import facts
from chalicelib.flow.ingest.apply import NO_JOB
from chalicelib.flow.limits import pools
from tests.faults.limits import check_limits
from tests.support import backfills, events
from tests.support.world import World

R = TypeVar("R")
# The next tick hints all overdue rows. So no row is overdue for longer than a tick and the grace period, unless it
# keeps failing.
MAX_OVERDUE = 2 * MINUTE + 10 * SECOND


class Stock:
    """Every row of the tables, by kind."""

    def __init__(self, world: World) -> None:
        self._rows = [(name, row["pk"]["S"], row["sk"]["S"], row) for name, row in world.tables.rows()]
        self._kinds: dict[type, list[Any]] = {}
        self._known = world.tables.known

    def _of(self, kind: type[R], table: str, *places: str, head: str = "") -> list[R]:
        found: list[R] = self._kinds.setdefault(kind, [])
        if not found:
            found += [self._parsed(kind, row) for name, pk, sk, row in self._rows
                      if name == f"{table}Table" and pk.startswith(head) and sk.startswith(places)]  # fmt: skip
        return found

    def _parsed(self, kind: type[R], item: Any) -> R:
        """Parse an item once: items are never changed in place, so later stocks reuse the result."""
        known = self._known.get(id(item))
        if known is None or known[0] is not item:
            known = self._known[id(item)] = (item, items.from_item(kind, item))
        return known[1]

    @property
    def jobs(self) -> list[Job]:
        """Waiting jobs, jobs under a tombstone, and bare tombstones."""
        return self._of(Job, "Jobs", "FIRE#", "JOB#", "GATHERING", "REDRIVE#", "RETRY#", "RUNNOW#")

    @property
    def applied(self) -> list[AppliedEvent]:
        return self._of(AppliedEvent, "Jobs", "APPLIED#")

    @property
    def waiters(self) -> list[Waiter]:
        return self._of(Waiter, "Jobs", "WAIT#")

    @property
    def runs(self) -> list[Run]:
        return self._of(Run, "Runs", "A#")

    @property
    def records(self) -> list[Record]:
        return self._of(Record, "Runs", "RECORD")

    @property
    def backfills(self) -> list[Backfill]:
        return self._of(Backfill, "Jobs", "", head="BACKFILL#")

    @property
    def reprocesses(self) -> list[Reprocess]:
        return self._of(Reprocess, "Jobs", "", head="REPROCESS#")

    @property
    def deployments(self) -> list[Deployment]:
        return self._of(Deployment, "Jobs", "", head="DEPLOYMENT#")

    @property
    def schedule_states(self) -> list[ScheduleState]:
        return self._of(ScheduleState, "Catalog", "STATE")

    @property
    def timers(self) -> list[Timer]:
        return self._of(Timer, "Catalog", "TIMER")

    @property
    def subscriptions(self) -> list[Subscription]:
        return self._of(Subscription, "Catalog", "", head="TRIGGER#")

    @cached_property
    def lines(self) -> dict[str, LimitState]:
        found = (row for name, _, sk, row in self._rows if name == "JobsTable" and sk == "STATE")
        named = ({**row, "limit_name": {"S": row["pk"]["S"].removeprefix("LIMIT#")}} for row in found)
        return {state.limit_name: state for state in (items.from_item(LimitState, row) for row in named)}

    @cached_property
    def versions(self) -> dict[tuple[str, int], Schedule]:
        rows = self._of(Version, "Catalog", "VERSION#")
        return {(row.schedule, row.version): Schedule.model_validate(row.definition) for row in rows}

    @cached_property
    def awake(self) -> list[tuple[int, str]]:
        waking = [found for found in self._rows if "wake_at" in found[3] and not items.is_listed(found[3])]
        return [(parse_instant(row["wake_at"]["S"]), f"{pk} {sk}") for _, pk, sk, row in waking]


def check(world: World, beside: Sequence[World] = ()) -> Stock:
    """Check what must hold at every moment. Returns the rows that were read. Installations ``beside`` this one call the
    same targets."""
    stock = Stock(world)
    _slots_are_counted(stock)
    _queues_are_what_jobs_say(stock)
    _the_index_matches_the_schedule_states(stock)
    _events_are_accounted_for(stock)
    _each_run_started_once(world, [stock, *map(Stock, beside)])
    _what_lives_stays(stock)
    _what_lives_is_counted(world, stock)
    for backfill in stock.backfills:
        backfills.check(backfill, [run for run in stock.runs if run.schedule == backfill.schedule])
    return stock


def check_rest(world: World, one_clock: bool = True, beside: Sequence[World] = ()) -> None:
    """Check what must also hold when all runs have ended, all schedules are closed or enabled, and time has passed.
    With ``one_clock``, limits are checked from history, because all its instants come from one clock.
    """
    stock, now = check(world, beside), world.clock.now()
    if one_clock:
        check_limits(stock.runs, stock.versions)
    for state in stock.lines.values():
        assert (state.active, state.waiters) == (0, 0), f"{state} at rest"
    late = [(name, now - at) for at, name in stock.awake if at < now - MAX_OVERDUE]
    assert late == [], "nothing is overdue for long"
    for backfill in stock.backfills:
        assert (backfill.state != "RUNNING", backfill.live) == (True, {}), f"{backfill} at rest"
    for reprocess in stock.reprocesses:
        assert (reprocess.ended_at is None, reprocess.wake_at) == (False, None), f"{reprocess} at rest"
    for deployment in stock.deployments:
        assert (deployment.state != "RUNNING", deployment.wake_at) == (True, None), f"{deployment} at rest"
    current = {
        (schedule_state.schedule, schedule_state.generation): schedule_state
        for schedule_state in stock.schedule_states
        if schedule_state.exists
    }
    for job in stock.jobs:
        schedule_state = current.get((job.schedule, job.generation))
        if job.closed:
            assert (job.held, job.queued_in, job.wake_at) == ((), None, None), f"an unsettled tombstone: {job}"
        elif schedule_state is None or schedule_state.mode == "disabled":
            assert job.kind in ("run_now", "redrive") and schedule_state is not None, (
                f"a job of a closed generation: {job}"
            )
        elif job.state != "PENDING_TRIGGER":
            assert job.wake_at is not None or schedule_state.mode in states.PAUSED_MODES, f"nothing will wake {job}"


def check_awake(world: World, beside: Sequence[World] = ()) -> None:
    """Check that all work that can proceed is checked soon: by the sweep if no hint comes."""
    stock, now = check(world, beside), world.clock.now()
    # What a drain leaves behind after a conflict is dropped by the next drain, which the closed row of the generation
    # causes.
    draining = {(job.schedule, job.generation) for job in stock.jobs
                if job.closed and job.wake_at is not None and job.wake_at <= now + MINUTE}  # fmt: skip
    for job in stock.jobs:
        if job.closed or (job.schedule, job.generation) in draining:
            continue
        if job.queued_in is not None:
            at = stock.lines[job.queued_in].wake_at
            soon = at is not None and (at <= now + MINUTE or not limit_names.returns_permit(job.queued_in))
            assert soon, f"nobody serves {job.queued_in} before {at}"
        else:
            known = facts.read(world.ports, job)
            rows = known.granted.rows.values()
            if job.reason.code == MISSING and any(row is not None and row.wake_at is not None for row in rows):
                continue  # the grants are an outbox, which wakes the job
            _is_woken_in_time(job, known, now)
            _is_woken_by_its_grants(job, known, stock, now)


def _is_woken_in_time(job: Job, known: Facts, now: Instant) -> None:
    """Until the job is woken, time alone changes no decision about it."""
    at: Instant | None = now
    while at is not None and (job.wake_at is None or at < job.wake_at):
        decision = decide(job, known, at)
        assert isinstance(decision, Wait), f"{decision} is due at {iso(at)}, and nothing wakes {job}"
        at = decision.until if decision.until is None or decision.until > at else None


def _is_woken_by_its_grants(job: Job, known: Facts, stock: Stock, at: Instant) -> None:
    """A job that waits for grants, or for the approval of its workflow, is found when these change."""
    listed = {(row.event_key, row.schedule, row.generation) for row in stock.subscriptions}
    asks = known.workflow is not None and known.workflow.approval is not None
    sleeps = job.wake_at is None or job.wake_at > at
    if asks and sleeps and known.schedule and known.schedule.workflow in job.reason.named("approval"):
        key = approval.waiters_key(known.schedule.workflow)
        assert (key, job.schedule, job.generation) in listed, f"no change of its workflow wakes {job}"
    if job.reason.code != MISSING or job.wake_at is not None:
        return
    for use in known.granted.missing:
        assert (waiters_key(use.owner), job.schedule, job.generation) in listed, f"no grant of {use.owner} wakes {job}"


def _slots_are_counted(stock: Stock) -> None:
    living = [run for run in stock.runs if not states.is_terminal(run.state)]
    used: Counter[str] = Counter()
    for row in living:
        used.update({line: returns.units_at(line, row.units) for line in row.permits})
    for job in stock.jobs:
        used.update({line: returns.units_at(line, job.units) for line in job.held})
    for name, state in stock.lines.items():
        if not limit_names.returns_permit(name):
            continue
        assert state.active == used[name], f"{name} counts {state.active} slots in use, and {used[name]} are"
        if not limit_names.names_starts(name):
            assert state.starts == {}, f"{name} grows with its runs"
            continue
        holders = {ids.holder_of(run.run_id, run.attempt) for run in living if name in run.permits}
        assert set(state.starts) == holders, f"{name} remembers {set(state.starts)} as living, and {holders} are"
    unknown = {name for name in used if limit_names.returns_permit(name)} - set(stock.lines)
    assert unknown == set(), "slots of lines that do not exist"


def _queues_are_what_jobs_say(stock: Stock) -> None:
    queued = Counter(waiter.limit_name for waiter in stock.waiters)
    for name, state in stock.lines.items():
        assert state.waiters == queued[name], f"{name} counts {state.waiters} waiters, and {queued[name]} are there"
        assert state.waiters == 0 or state.wake_at is not None, f"{name} has waiters and sleeps"
    places = Counter(
        (w.limit_name, w.rank, w.job_schedule, w.job_generation, w.job_sort_key, w.job_id) for w in stock.waiters
    )
    waiting = Counter((job.queued_in, job.rank, job.schedule, job.generation, job.sort_key, job.job_id)
                      for job in stock.jobs if job.queued_in is not None)  # fmt: skip
    runs = [w for run in stock.runs if (w := waiting_of.waiter_of(run)) is not None]
    waiting.update((w.limit_name, w.rank, w.job_schedule, w.job_generation, w.job_sort_key, w.job_id) for w in runs)
    assert places == waiting, "each place in a queue has its job or run, and each that waits its place"
    assert all(run.state == "STARTING" for run in stock.runs if run.queued_in is not None), (
        "only who is to start queues"
    )


def _what_lives_stays(stock: Stock) -> None:
    """An active run has no TTL, nor has a tombstone with permits to release. Otherwise those permits would never be
    released.
    """
    ends = [run for run in stock.runs if run.expires_at is not None and not states.is_terminal(run.state)]
    assert ends == [], "living runs that pass away"
    holding = [job for job in stock.jobs if job.expires_at is not None and (job.held or job.queued_in or job.wake_at)]
    assert holding == [], "jobs that pass away with what they hold"


def _what_lives_is_counted(world: World, stock: Stock) -> None:
    """An active run holds a permit of each group, and of the pool, that its schedule names at present. A put in
    progress is an exception: the schedule state or the workflow is then marked as uncounted.
    """
    schedule_states = {
        schedule_state.schedule: schedule_state
        for schedule_state in stock.schedule_states
        if not schedule_state.uncounted and schedule_state.exists
    }
    for run in stock.runs:
        schedule_state = schedule_states.get(run.schedule)
        schedule = (
            stock.versions.get((schedule_state.schedule, schedule_state.version))
            if schedule_state is not None
            else None
        )
        row = world.ports.rows.get(Definition, "workflow", run.workflow)
        over = states.is_terminal(run.state) or row is None or row.uncounted
        if over or schedule is None or row is None or schedule.workflow != run.workflow:
            continue
        workflow = Workflow.model_validate(row.document)
        if not workflow.target.has_lifecycle:
            continue
        assert counting.missing_groups(run, schedule) == [], f"{run} is in a group that does not count it"
        pooled = pools.ask_of(world.ports, workflow, schedule)
        assert pooled is None or not counting.lacks_pool(run, pooled[0]), f"{run} is in a pool that does not count it"


def _the_index_matches_the_schedule_states(stock: Stock) -> None:
    expected: set[tuple[str, str, int, str]] = set()
    timed: dict[str, int] = {}
    ending: set[str] = set()  # a schedule that no longer gathers may have a timer that wakes for its removal
    for schedule_state in stock.schedule_states:
        schedule = stock.versions[schedule_state.schedule, schedule_state.version]
        gathers = schedule_state.mode in states.GATHERING_MODES
        rows = lifecycle.subscriptions(schedule_state, schedule, 0) if schedule_state.exists else []
        expected |= {_place(row) for row in rows if gathers or row.leaf == WAKE}
        if gathers and tree.timed_leaves(schedule.trigger):
            timed[schedule_state.schedule] = schedule_state.generation
        elif schedule_state.exists and (schedule.ttl is not None or schedule.when_done == "delete"):
            ending.add(schedule_state.schedule)
    # A row of what waits for a grant, or for a workflow's approval, stays until these change: the waiting job may be
    # gone before.
    waits = (waiters_key(""), approval.waiters_key(""))
    listed = {_place(row) for row in stock.subscriptions if not row.event_key.startswith(waits)}
    _same(listed, expected, "index rows")
    awake = [timer for timer in stock.timers if timer.schedule not in ending]
    clocks = {timer.schedule: timer.generation for timer in awake if timer.wake_at or timer.schedule in timed}
    assert clocks == timed, "each schedule that gathers has the timer of its generation, and no other has one"


def _place(row: Subscription) -> tuple[str, str, int, str]:
    return row.event_key, row.schedule, row.generation, row.leaf


def _events_are_accounted_for(stock: Stock) -> None:
    """Every counted event belongs to a job, a run or a record."""
    ends = {run.run_id for run in stock.runs} | {record.id for record in stock.records}
    known = ends | {job.job_id for job in stock.jobs} | {NO_JOB}
    lost = [marker for marker in stock.applied if marker.event_job not in known]
    assert lost == [], "events of jobs that are nowhere"
    for job in stock.jobs:
        if job.closed and not job.job_id:
            continue  # a tombstone: its events are in the record of the dropped job
        _counts_are_those_of_markers(job, [marker for marker in stock.applied if marker.event_job == job.job_id])
    ran = {run.run_id for run in stock.runs if not bundles.is_bundle_id(run.run_id)}
    did_well = {run.run_id for run in stock.runs if run.state != "FAILED"} & ran
    for record in stock.records:
        # A dropped dead letter has a record in addition to its run. All attempts of that run have failed.
        known = did_well if record.reason.code == "letter_dropped" else ran
        assert record.kind == "COALESCED" or record.id not in known, "what ran has no record of not having run"
    _bundles_are_accounted_for(stock)


def _bundles_are_accounted_for(stock: Stock) -> None:
    """No event of a bundle has run, waits and is on record in two ways at once."""
    dropped = {record.id: record.count for record in stock.records}
    waiting = {job.job_id: job for job in stock.jobs if job.is_bundle}
    for run in stock.runs:
        place = bundles.place_of(run.run_id)
        if place is not None:
            sent, (_, _, size) = set(events.of_run(run)), place
            assert len(sent) + dropped.get(run.run_id, 0) <= size, "what ran has no record of not having run"
            job = waiting.get(run.run_id)
            assert job is None or not sent & set(events.of_job(job)), "what ran does not wait"


def _counts_are_those_of_markers(job: Job, markers: list[AppliedEvent]) -> None:
    """Each event counts once for each of its leaves. An event that ends an absence removes the progress of a leaf. The
    parts of a period may have come before its job, without a mark."""
    counts = [progress.count for progress in job.leaves.values() if progress.parts is None]
    if counts and not any(marker.event.kind == "absent" for marker in markers):
        answer = f"{job} counts {counts}, and has {len(markers)} events"
        assert max(counts) <= len(markers) <= sum(counts), answer


def check_apart(*stocks: Stock) -> None:
    """Check installations between which namespaces move: each schedule, each job and each active run is in one of them,
    and no schedule has counted an event in two."""
    places = Counter(
        place
        for stock in stocks
        for place in [
            *(("schedule", row.schedule, 0) for row in stock.schedule_states),
            *(("job", job.job_id, job.attempt) for job in stock.jobs if job.job_id and not job.closed),
            *(("run", run.run_id, run.attempt) for run in stock.runs if not states.is_terminal(run.state)),
            *(("event", f"{row.schedule}@{row.generation} {row.event.id}", 0) for row in stock.applied),
        ]
    )
    assert [place for place, count in places.items() if count > 1] == [], "in two places at once"


def _each_run_started_once(world: World, stocks: Sequence[Stock]) -> None:
    names = Counter(made.name for made in world.targets.emr.runs.values())
    assert [name for name, count in names.items() if count > 1] == [], "no attempt starts two EMR runs"
    known = {run.request.name for stock in stocks for run in stock.runs}
    assert set(names) <= known, "every EMR run is on record"


def _same(found: Iterable[Any], expected: Iterable[Any], what: str) -> None:
    missing, fallback = set(expected) - set(found), set(found) - set(expected)
    assert not missing and not fallback, f"{what}: missing {missing}, fallback {fallback}"
