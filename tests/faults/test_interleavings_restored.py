"""Interleavings 14 and 20 with tables that were restored to different instants, in each order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.limits.writes import NewEdition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.targets.answers import NotNow
from sluice.operations.repair.repair import Finding
from tests.faults import invariants
from tests.support import backfills
from tests.support.crash import lost, wrap
from tests.support.read_only import read_only
from tests.support.repairs import mended
from tests.support.schedules import after, at, at_most, partitions
from tests.support.world import EMR, World, day, flights

LIMIT = "workflow:demo.flights.clean"
RETRIED = {"target": EMR, "retries": {"attempts": 2, "delay": "5m"}}
TABLES = ("CatalogTable", "JobsTable", "RunsTable")
Saved = dict[str, Any]


def mixed(world: World, older: Saved, *tables: str) -> None:
    """Restore these tables to an earlier instant than the others, which stay as they are. Hints are lost."""
    now = world.tables.saved()
    world.tables.restore({name: (older if name in tables else now)[name] for name in TABLES})
    world.hints.sent = []
    for made in world.targets.emr.runs.values():
        made.token = f"forgotten {made.token}"


def repaired(world: World, since: int, **how: Any) -> list[Finding]:
    found = mended(world, since, **how)
    stock = invariants.Stock(world)
    invariants._slots_are_counted(stock)
    invariants._queues_are_what_jobs_say(stock)
    return found


def one_run(world: World, state: str = "SUCCEEDED") -> None:
    world.pass_by("2m")
    world.finish()
    world.pass_by("15m")
    assert [run.state for run in world.runs("daily")] == [state]
    assert len(world.targets.emr.runs) == 1 + len(world.runs("next"))
    assert len(world.runs("next")) == 1
    assert world.limit_state(LIMIT).active == 0


def came(world: World) -> None:
    world.upload(day(1))


def began(world: World) -> None:
    world.settle()


def ended(world: World) -> None:
    world.finish()
    world.settle()


ORDERS = [["CatalogTable"], ["JobsTable"], ["RunsTable"], ["CatalogTable", "JobsTable"], ["CatalogTable", "RunsTable"],
          ["JobsTable", "RunsTable"], [*TABLES]]  # fmt: skip


@pytest.mark.parametrize("older", ORDERS, ids="+".join)
@pytest.mark.parametrize("steps", [(came,), (began,), (ended,), (came, began), (began, ended), (came, began, ended)])
def test_interleaving_20_restored_tables_have_one_run(
    older: list[str], steps: tuple[Callable[[World], None], ...]
) -> None:
    """Some steps happen between the two instants: the partition comes, its run begins, its run ends."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1)), "next": after("clean", "join")}))
    before = world.tables.saved()
    since = world.clock.now()
    for step in (came, began, ended):
        if step is steps[0]:
            before = world.tables.saved()
        world.clock.pass_by("1m")
        step(world)
        if step is steps[-1]:
            break
    mixed(world, before, *older)
    world.clock.pass_by("5m")
    repaired(world, since)
    one_run(world)


@pytest.mark.parametrize("older", ORDERS, ids="+".join)
def test_interleaving_14_restored_tables_keep_one_retry(older: list[str]) -> None:
    """Between the instants a run fails and another job takes its slot. The retry waits, and nothing hears FAILED."""
    world = World(wake_shards=1, history_shards=1)
    failing = {"downstream": after("clean", "join", "FAILED"), "daily": partitions(by=["day"], **at_most(1))}
    world.deploy(flights(failing, clean=RETRIED))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    before, since = world.tables.saved(), world.clock.now()
    world.clock.pass_by("1m")
    world.emr_says("jr00001", "FAILED")
    world.settle()
    assert len(world.targets.emr.runs) == 2, "the other job has the slot"
    mixed(world, before, *older)
    world.clock.pass_by("2m")
    repaired(world, since)
    world.pass_by("20m")
    assert world.runs("downstream") == []
    assert world.limit_state(LIMIT).active == 1
    for _ in range(3):
        world.finish()
        world.pass_by("20m")
    first, *_ = world.targets.emr.runs.values()
    attempts = world.ports.runs.attempts(first.name.rpartition("-")[0])
    assert [run.state for run in attempts] == ["RETRYING", "SUCCEEDED"]
    assert len({made.name for made in world.targets.emr.runs.values()}) == len(world.targets.emr.runs) == 3
    assert world.runs("downstream") == []


def test_o4_a_dry_run_says_the_same_and_changes_nothing() -> None:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1))}))
    before, since = world.tables.saved(), world.clock.now()
    world.upload(day(1))
    world.settle()
    mixed(world, before, "RunsTable")
    assert world.ports.ledger.commit([NewEdition(LIMIT, 9)]) is None, "the limit is not that of its workflow"
    rows = dict(world.tables.saved())
    said = mended(world, since, ports=read_only(world.ports), dry_run=True)
    assert world.tables.saved().keys() == rows.keys()
    assert world.tables.digest == _digest(world, rows)
    assert [finding.kind for finding in said] == [finding.kind for finding in repaired(world, since)]
    assert "unknown run" in {finding.kind for finding in said}


def _digest(world: World, saved: Saved) -> int:
    world.tables.restore(saved)
    return world.tables.digest


@pytest.mark.parametrize(("unknown", "states"), [("adopt", ["RUNNING"]), ("cancel", ["CANCELLED"]), ("leave", [])])
def test_o4_job_runs_that_no_table_has_are_treated_as_asked(unknown: str, states: list[str]) -> None:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": {**partitions(), "trigger": {"type": "event", "event": "go"}}}))
    before, since = world.tables.saved(), world.clock.now()
    world.run_now("daily")
    world.settle()
    world.targets.emr.runs["jr00001"].state = "RUNNING"
    mixed(world, before, *TABLES)
    repaired(world, since, unknown=unknown)
    world.pass_by("15m")
    assert [run.state for run in world.runs("daily")] == states
    assert len(world.targets.emr.runs) == 1


def test_o4_a_schedule_that_was_closed_since_is_held() -> None:
    """The catalog is older than a disable that was acknowledged. Nothing starts before a person decides."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions()}))
    before, since = world.tables.saved(), world.clock.now()
    world.disable("daily")
    mixed(world, before, "CatalogTable")
    found = repaired(world, since)
    assert [finding.name for finding in found if finding.kind == "schedule"] == ["demo.flights.daily"]
    assert world.ports.rows.get(ScheduleState, "demo.flights.daily").mode == "hold"
    world.upload(day(1))
    world.pass_by("5m")
    assert world.runs("daily") == []


def test_o4_a_status_is_announced_again_to_a_lost_job() -> None:
    """The downstream job waits when the tables are lost. The jobs table is older than the end of the upstream run."""
    world = World(wake_shards=1, history_shards=1)
    waits = [{"type": "delay", "after": "20m", "since": "met"}]
    world.deploy(flights({"daily": partitions(), "next": after("clean", "join", constraints=waits)}))
    world.upload(day(1))
    world.settle()
    before, since = world.tables.saved(), world.clock.now()
    world.clock.pass_by("1m")
    world.finish()
    world.settle()
    assert len(world.jobs("next")) == 1
    mixed(world, before, "JobsTable")
    assert len(world.jobs("next")) == 0
    repaired(world, since)
    world.pass_by("25m")
    assert [run.state for run in world.runs("next")] == ["STARTING"]


def test_o4_a_schedule_that_was_replaced_since_is_held() -> None:
    """The catalog is older than a replacement, for which an event has gathered. The old definition starts nothing."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions(count=2)}))
    before, since = world.tables.saved(), world.clock.now()
    world.clock.pass_by("1m")
    world.put("daily", partitions(count=3))
    world.upload(day(1))
    mixed(world, before, "CatalogTable")
    [held] = [finding for finding in repaired(world, since) if finding.kind == "schedule"]
    assert "replaced or enabled again" in held.done
    for number in (2, 3):
        world.upload(day(number))
    world.pass_by("5m")
    assert world.runs("daily") == []


@pytest.mark.parametrize("waiting", [False, True], ids=["nothing waits", "a job waits"])
@pytest.mark.parametrize("change", ["disable", "put"])
def test_o4_a_held_schedule_goes_on_when_a_person_resumes_it(change: str, waiting: bool) -> None:
    """The change that the catalog has lost has closed the generation, which must gather again."""
    world = World(wake_shards=1, history_shards=1)
    document = partitions(count=2)
    world.deploy(flights({"daily": document}))
    if waiting:
        world.upload(day(1))
        world.settle()
    before, since = world.tables.saved(), world.clock.now()
    world.clock.pass_by("1m")
    if change == "disable":
        world.disable("daily")
    else:
        world.put("daily", {**document, "on_update": "drop", "priority": 9})
    mixed(world, before, "CatalogTable")
    repaired(world, since)
    assert repaired(world, since) == [], "a second repair finds nothing to do"
    world.upload(day(2))
    world.pass_by("5m")
    assert world.runs("daily") == []
    world.resume("daily")
    world.upload(day(3))
    world.pass_by("5m")
    assert len(world.runs("daily")) == 1
    invariants.check(world)


@pytest.mark.parametrize("older", ["CatalogTable", "JobsTable"])
def test_o4_a_workflow_replaced_since_takes_jobs_again(older: str) -> None:
    """The limit of a workflow and its definition have its edition, of two instants. The first definition has none."""
    world = World(wake_shards=1, history_shards=1)
    app = flights({"daily": partitions(by=["day"], **at_most(1)), "next": after("clean", "join")}, clean=RETRIED)
    world.deploy(app)
    saved = world.tables.saved()
    world.deploy({**app, "workflows": {**app["workflows"], "clean": {**RETRIED, "priority": 7}}})
    mixed(world, saved, older)
    repaired(world, world.clock.now() - 60_000)
    world.upload(day(1))
    world.settle()
    one_run(world)


@pytest.mark.parametrize("effects", range(1, 4))
def test_o4_a_job_that_a_put_has_just_closed_keeps_its_events(effects: int) -> None:
    """The put died before it had dropped the job of the former version. A repair called this job lost."""
    world = World(wake_shards=1, history_shards=1)
    pairs = partitions(2)
    world.deploy(flights({"daily": pairs}))
    world.upload(day(1))
    world.settle()
    points = wrap(world)
    points.armed, points.die_after = True, effects
    lost(lambda: world.put("daily", {**pairs, "on_update": "drop", "priority": 9}))
    points.armed = False
    assert [each for each in repaired(world, world.clock.now() - 60_000) if each.kind == "event"] == []
    invariants.check(world)
    world.pass_by("2m")
    assert [record.kind for record in world.records("daily")] == ["DROPPED"]
    invariants.check(world)


@pytest.mark.parametrize("outcome", ["SUCCESS", "FAILED"])
def test_o4_runs_of_a_backfill_that_is_lost_come_to_their_end(outcome: str) -> None:
    """The jobs table is older than the request of the backfill; EMR and the runs table know its runs."""
    world = World(wake_shards=1, history_shards=1)
    schedules = {"daily": partitions(), "nightly": at("0 5 * * *", "join"), "next": after("join", "clean")}
    world.deploy(flights(schedules, join={"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}))
    before, since = world.tables.saved(), world.clock.now()
    days = {"from_": "2026-02-10T00:00:00Z", "to": "2026-02-12T23:00:00Z"}
    backfills.begin(world, "nightly", concurrency=2, **days)
    world.settle()
    assert len(world.runs("nightly")) == 2
    mixed(world, before, "JobsTable")
    kinds = [finding.kind for finding in repaired(world, since)]
    assert kinds.count("backfill") == 2
    assert repaired(world, since) == []
    for _ in range(3):
        world.finish(outcome)
        world.settle()
        world.pass_by("2m")
    expected = {"SUCCESS": ["SUCCEEDED"] * 2, "FAILED": ["FAILED"] * 2}[outcome]
    assert sorted(run.state for run in world.runs("nightly") if run.state != "RETRYING") == expected
    assert world.limit_state("workflow:demo.flights.join").active == 0
    invariants.check(world)


@pytest.mark.parametrize("timeout", ["never", {"after": "1h"}])
def test_o4_a_job_of_a_closed_generation_is_dropped(timeout: Any) -> None:
    """The jobs table is older than a replacement, which has closed the job that gathers. Nothing else wakes the job."""
    world = World(wake_shards=1, history_shards=1)
    pairs = partitions(2, timeout=timeout)
    world.deploy(flights({"daily": pairs}))
    world.upload(day(1))
    before, since = world.tables.saved(), world.clock.now()
    world.clock.pass_by("1m")
    world.put("daily", {**pairs, "on_update": "drop", "priority": 9})
    mixed(world, before, "JobsTable", "RunsTable")
    repaired(world, since)
    world.pass_by("2m")
    stock = invariants.Stock(world)
    assert [job for job in stock.jobs if not job.closed and job.created_at <= since] == []
    assert [record.kind for record in world.records("daily")] == ["DROPPED"]
    invariants.check_awake(world)


def test_o4_every_event_of_a_lost_job_counts_again() -> None:
    """The job was claimed; the runs table is older, and EMR has no run. Every second event used to be left out."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions(5)}))
    before, since = world.tables.saved(), world.clock.now()
    world.targets.emr.answers = [NotNow("throttled")]
    for number in range(1, 6):
        world.upload(day(number))
    world.settle()
    assert world.jobs("daily") == []
    mixed(world, before, "RunsTable")
    kinds = [finding.kind for finding in repaired(world, since)]
    assert kinds.count("event") == 5
    world.pass_by("1m")
    [run] = world.runs("daily")
    assert len(world.context(run)["events"]) == 5
    invariants.check(world)
