"""Namespaces that move while they hold or wait for limits of others: a limit counts who is there, in both places (L14).

The namespace `demo` runs a workflow of `lake`, and uses its pool and its policy. One of the two moves, or one after the
other, in both orders. Everything ends afterwards, and no limit keeps a permit of a run that has gone.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from tests.faults import invariants
from tests.operations.archive.test_export import SMALL, elsewhere, rows
from tests.support.archives import MemoryArchive, exported, given_up, imported
from tests.support.fakes import APPLICATION
from tests.support.schedules import at_most, partitions
from tests.support.world import EMR, World, day, flights

APPLICATIONS = {**SMALL, "emr_run_limits": ((APPLICATION, 9),)}
LAKE = {
    "workflows": {"count": {"target": EMR}},
    "pools": {"p": {"size": 4, "shares": {"core.count": {"reserved": 1}}}},
    "policies": {"calm": {"max_events": 1, "interval": "1m"}},
    "schedules": {"own": {"workflow": "count", "trigger": {"type": "event", "event": "go"}, "enabled": True,
                          "pool": "p", "coalesce": False, **at_most(2)}},
}  # fmt: skip
RATE = {"constraints": [{"type": "rate", "max": 2, "per": "1h"}]}
GAP = {"constraints": [{"type": "since_last_run", "at_least": "30m", "of": "any", "on_unmet": "wait"}]}
USES = {
    "workflow": {"workflow": "lake.core.count", **at_most(2)},
    "pool": {"pool": "lake.p", "slots": 2},
    "policy": {"policy": "lake.calm"},
    "both": {"pool": "lake.p", "policy": "lake.calm"},
    "rate": {"workflow": "lake.core.count", **RATE},
    "share": {"workflow": "lake.core.count", "pool": "lake.p", **at_most(9)},
}


def shared(**fields: object) -> World:
    """Four days have arrived for a schedule of `demo` which uses `lake` in some way, and `lake` has a run, too."""
    world = World(**APPLICATIONS)
    world.deploy(LAKE, "lake", "core")
    world.deploy(flights({"daily": partitions(by=["day"], **fields)}))
    world.post("go", "first", namespace="lake")
    world.settle()
    for number in (1, 2, 3, 4):
        world.upload(day(number))
    world.settle()
    world.pass_by("7s")
    return world


def moved(world: World, *namespaces: str, into: World | None = None) -> World:
    """Move namespaces into another installation, which calls the same targets."""
    archive = exported(world, *namespaces)
    given_up(world, archive)
    counted(world)
    return elsewhere(archive, world, new=into or World(**APPLICATIONS), copy=False)


def counted(world: World) -> None:
    """Each limit counts the runs and jobs that are in its installation, and no other."""
    stock = invariants.Stock(world)
    invariants._slots_are_counted(stock)
    invariants._queues_are_what_jobs_say(stock)


def end(*worlds: World) -> None:
    """Let all work end, also what waits for a rate of two starts an hour."""
    for span in (*["61s"] * 12, "61m", "1m", "61m", "1m"):
        for world in worlds:
            world.pass_by(span)
            world.settle()
        for world in worlds:
            world.finish()
            world.settle()
    for world in worlds:
        counted(world)
        busy = [state for state in invariants.Stock(world).lines.values() if (state.active, state.waiters) != (0, 0)]
        assert busy == []


@pytest.mark.parametrize("use", USES)
def test_l14_what_moves_frees_the_limits_of_who_stays(use: str) -> None:
    world = shared(**USES[use])
    new = moved(world, "demo")
    counted(new)
    world.post("go", "second", namespace="lake")
    end(world, new)
    assert [run.state for run in world.runs("lake.core.own")] == ["SUCCEEDED"] * 2


@pytest.mark.parametrize("use", USES)
def test_l14_who_stays_ends_without_the_limits_that_moved(use: str) -> None:
    """The source keeps a limit until the last run that holds it has ended. The target counts its own runs there."""
    world = shared(**USES[use])
    before = {run.run_id for run in world.runs("daily")}
    new = moved(world, "lake")
    counted(new)
    end(world, new)
    assert {run.run_id: run.state for run in world.runs("daily") if run.run_id in before} == dict.fromkeys(
        before, "SUCCEEDED"
    )
    assert [run.state for run in new.runs("lake.core.own")] == ["SUCCEEDED"]


@pytest.mark.parametrize("order", [("lake", "demo"), ("demo", "lake")], ids=lambda order: order[0])
@pytest.mark.parametrize("use", USES)
def test_l14_runs_count_at_limits_that_move_later_or_before(use: str, order: tuple[str, str]) -> None:
    world = shared(**USES[use])
    active = [run for run in invariants.Stock(world).runs if run.state != "SUCCEEDED"]
    new = moved(world, order[0])
    new = moved(world, order[1], into=new)
    counted(new)
    there = {run.run_id: run for run in invariants.Stock(new).runs}
    assert {run.run_id: sorted(run.permits) for run in active} == {
        run.run_id: sorted(there[run.run_id].permits) for run in active
    }
    left = {key[1] for key in rows(world) if key[0] == "JobsTable"}
    counts = ("LIMIT#", "CLOSINGS#")
    assert {pk for pk in left if not pk.startswith(counts)} == set(), "nothing of either but counts without runs"
    new.post("go", "second", namespace="lake")
    end(new)
    assert len(new.runs("lake.core.own")) == 2
    invariants.check(new)


def test_l14_a_full_pool_stays_full_after_both_have_moved() -> None:
    """Two runs of `demo` hold all four units. Nothing of `lake` starts beside them in the new installation."""
    world = shared(pool="lake.p", slots=2, **at_most(9))
    pools = {name: state.active for name, state in invariants.Stock(world).lines.items() if name.startswith("pool:")}
    assert sum(pools.values()) >= 3
    new = moved(world, "lake")
    new = moved(world, "demo", into=new)
    found = {name: new.limit_state(name).active for name in pools}
    assert found == pools
    for number in range(3):
        new.post("go", f"more{number}", namespace="lake")
    new.settle()
    in_use = sum(state.active for name, state in invariants.Stock(new).lines.items() if name.startswith("pool:"))
    assert in_use <= 4
    end(new)


@pytest.mark.parametrize("order", [("demo", "lake"), ("lake", "demo")], ids=lambda order: order[0])
def test_l14_jobs_in_parts_of_a_foreign_queue_go_on(order: tuple[str, str]) -> None:
    """A policy was fast, so its queue has parts, and is slow now. The jobs of `demo` wait in the parts."""
    world = World(**APPLICATIONS)
    world.deploy({**LAKE, "policies": {"calm": {"max_events": 300, "interval": "1s"}}}, "lake", "core")
    fields = {"workflow": "notify", "policy": "lake.calm", "coalesce": False}
    world.deploy(flights({"daily": partitions(by=["day"], **fields)}))
    world.upload(day(1))
    world.settle()
    world.pass_by("2s")
    store.put(world.ports, "policy", "lake.calm", {"max_events": 1, "interval": "5m"}, "tester")
    for number in range(2, 8):
        world.upload(day(number))
    world.settle()
    queues = {job.queued_in for job in world.jobs("daily") if job.queued_in is not None}
    assert any("/" in name for name in queues), queues
    new = moved(world, order[0])
    counted(new)
    new = moved(world, order[1], into=new)
    counted(new)
    for _ in range(14):
        new.pass_by("5m")
        new.settle()
    assert len(new.targets.queue.messages) == 7
    counted(new)


@pytest.mark.parametrize("finished", [False, True])
def test_l14_a_rate_holds_over_the_starts_of_runs_that_arrive(finished: bool) -> None:
    """Two starts an hour: both were in the source, in the namespace that moves last, and no third one follows."""
    world = shared(workflow="lake.core.count", **RATE)
    world.settle()
    if finished:
        world.finish()
        world.settle()
    started = len(world.runs("daily")) + 1
    new = moved(world, "lake")
    new = moved(world, "demo", into=new)
    new.pass_by("20m")
    new.settle()
    assert len(new.runs("daily")) + 1 == started
    end(new)
    assert len(new.runs("daily")) + 1 > started


@pytest.mark.parametrize("finished", [False, True])
def test_l14_a_gap_counts_from_the_last_start_that_arrives(finished: bool) -> None:
    world = shared(workflow="lake.core.count", **GAP)
    world.pass_by("40m")
    if finished:
        world.finish()
        world.settle()
    first = [run.claimed_at for run in world.runs("daily")]
    assert len(first) >= 1
    new = moved(world, "lake")
    assert new.limit_state("workflow:lake.core.count").last_start is not None
    new = moved(world, "demo", into=new)
    assert new.limit_state("workflow:lake.core.count").last_start == max(first)
    for _ in range(6):
        new.pass_by("11m")
        new.finish()
        new.settle()
    starts = sorted(run.claimed_at for run in new.runs("daily"))
    assert all(late - early >= 30 * MINUTE for early, late in pairwise(starts)), starts


@pytest.mark.parametrize("order", [("demo", "lake"), ("lake", "demo")], ids=lambda order: order[0])
def test_l14_jobs_that_wait_for_a_grant_go_on_beside_it(order: tuple[str, str]) -> None:
    """The grants arrive where the jobs wait, or the jobs arrive where the grants are."""
    world = shared(pool="lake.p", slots=2)
    new = World(**APPLICATIONS)
    for each in (world, new):
        each.ports = each.with_ports(settings=replace(each.ports.settings, authorization="enforce"))
    world.grant("lake", {"grants": [{"to": "demo", "pools": ["*"]}]})
    world.settle()
    new = moved(world, order[0], into=new)
    apart = new if order[0] == "demo" else world
    apart.pass_by("2m")
    waiting = [job.reason.text for job in apart.jobs("daily") if job.state == "PENDING_CONSTRAINTS"]
    assert waiting and all(why.startswith("waits for a grant of lake") for why in waiting)
    new = moved(world, order[1], into=new)
    end(new)
    assert [run.state for run in new.runs("daily")] == ["SUCCEEDED"] * 4


def test_l14_an_import_that_breaks_off_counts_each_run_once() -> None:
    world = shared(pool="lake.p", workflow="lake.core.count", **at_most(3))
    lake = exported(world, "lake")
    given_up(world, lake)
    demo = exported(world, "demo")
    given_up(world, demo)
    expected = None
    for number in range(1, 200):
        new = World(**APPLICATIONS)
        new.clock.wait_until(world.clock.now())
        imported(new, MemoryArchive(lake.files), copy=False)
        archive, left = MemoryArchive(demo.files), [number]

        def fails(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise InterruptedError

        new.tables.after_write = fails
        try:
            imported(new, archive, copy=False)
        except InterruptedError:
            new.tables.after_write = lambda: None
            imported(new, archive, copy=False)
        counted(new)
        lines = {name: state.active for name, state in invariants.Stock(new).lines.items()}
        expected = expected or lines
        assert lines == expected
        if left[0] > 0:
            break
    assert number > 10


def test_l14_a_giving_up_that_breaks_off_frees_each_unit_once() -> None:
    """Also of the limits that stay, because runs of another namespace hold them."""
    expected: dict[str, tuple[int, int]] = {}
    for number in range(1, 200):
        world = shared(pool="lake.p", **at_most(3))
        archive, left = exported(world, "lake"), [number]

        def fails(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise InterruptedError

        world.tables.after_write = fails
        try:
            given_up(world, archive)
        except InterruptedError:
            world.tables.after_write = lambda: None
            given_up(world, archive)
        world.tables.after_write = lambda: None
        counted(world)
        found = {name: (state.active, state.waiters) for name, state in invariants.Stock(world).lines.items()}
        expected = expected or found
        assert found == expected
        if left[0] > 0:
            break
    assert number > 3


def test_l14_a_limit_counts_runs_of_a_deleted_namespace() -> None:
    """The namespace was deleted here while a run was active, and then it is imported again."""
    world = shared(pool="lake.p")
    archive = exported(world, "lake", "demo")
    new = World(**APPLICATIONS)
    new.deploy(LAKE, "lake", "core")
    new.post("go", namespace="lake")
    new.settle()
    deploy.delete_app(new.ports, "lake.core", "tester")
    for kind, name in (("pool", "lake.p"), ("policy", "lake.calm"), ("namespace", "lake")):
        store.delete(new.ports, kind, name)
    new.clock.wait_until(world.clock.now())
    [old] = [run for run in invariants.Stock(new).runs if run.schedule == "lake.core.own"]
    assert "pool:lake.p:lake.core.count" in old.permits
    world.targets.emr.runs["of the new installation"] = new.targets.emr.runs[str(old.target_id).rpartition("/")[2]]
    new = elsewhere(archive, world, new=new)
    counted(new)
    end(new)


def test_l14_a_source_that_still_runs_gives_nothing_up() -> None:
    """A run of the namespace ended after the export, and freed a unit of another namespace's pool."""
    world = shared(pool="lake.p")
    archive = exported(world, "demo")
    world.finish()
    world.settle()
    with pytest.raises(SluiceError, match="they have changed since"):
        given_up(world, archive)
    counted(world)
