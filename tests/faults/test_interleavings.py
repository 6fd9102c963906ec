"""Orders of events in which a careless design fails; the numbers are those of docs/internals/interleavings.md."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from chalicelib.core.events import partitions as event_partitions
from chalicelib.core.events.build import partition_event
from chalicelib.core.instants import DAY, MINUTE, SECOND
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Conflict, Put
from chalicelib.flow.fires import emit
from chalicelib.flow.ingest import apply, objects
from chalicelib.flow.system import sweep
from tests.support.crash import Crash
from tests.support.ledgers import LedgerBetween, has_kind
from tests.support.schedules import after, at, partitions
from tests.support.world import World, day, flights

MakeWorld = Callable[..., World]


def test_interleaving_02_six_fires_are_six_runs_on_their_seconds(world: World) -> None:
    world.deploy(flights({"tick": at("@every 10s", "notify")}))
    start = world.clock.now()
    world.pass_by("1m")

    assert [run.nominal_at for run in world.runs("tick")] == [start + step * 10 * SECOND for step in range(1, 7)]
    assert all(run.start_requested_at == run.nominal_at for run in world.runs("tick"))


def test_interleaving_02_a_prepared_fire_waits_for_its_second(world: World) -> None:
    either = {
        "workflow": "clean",
        "enabled": True,
        "trigger": {
            "type": "all",
            "triggers": [
                {"type": "time", "expression": "@every 50s"},
                {"type": "partition", "dataset": "flights"},
            ],
        },
    }
    world.deploy(flights({"both": either}))
    assert [job.sort_key[:5] for job in world.jobs("both")] == ["FIRE#"] * 2
    world.clock.pass_by("20s")
    world.upload(day(1))
    world.settle()
    assert world.runs("both") == []

    world.pass_by("30s")
    assert len(world.runs("both")) == 1


def test_interleaving_03_match_read_before_disable_never_starts(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    [read_before] = world.ports.catalog.subscriptions("partition:demo.flights", 10, None).items
    event = _partition_event(world, "1")

    world.disable("daily")
    apply.apply_event(world.ports, event, [read_before], world.clock.now())
    world.clock.pass_by("1s")
    world.enable("daily")
    apply.apply_event(world.ports, event, [read_before], world.clock.now())
    world.pass_by("5m")

    assert world.runs("daily") == []
    assert world.jobs("daily") == []


def test_interleaving_04_a_duplicate_after_update_counts_nothing(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.clock.pass_by("1s")
    world.put("daily", partitions(2, properties={"new": True}, on_update="drop"))
    world.upload(day(1))
    world.settle()
    assert world.jobs("daily") == []


def test_interleaving_05_a_run_lists_exactly_events_of_its_job(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    inner, late = world.ports.ledger, day(3)

    class HearsAfterTheClaim(LedgerBetween):
        """A ledger that delivers the third partition between the claim of the first job and the start of its run."""

        def after(self, writes: Any, conflict: Conflict | None) -> None:
            if has_kind("DeleteJob")(writes) and conflict is None:
                world.ports = replace(world.ports, ledger=inner)
                world.upload(late)

    world.ports = replace(world.ports, ledger=HearsAfterTheClaim(inner))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    world.upload(day(4))
    world.settle()

    answer = [[event["partition"]["day"] for event in world.context(run)["events"]] for run in world.runs("daily")]
    assert sorted(answer) == [["1", "2"], ["3", "4"]]


def test_interleaving_06_a_broken_match_resumes_for_other_600(world: World) -> None:
    names = [f"s{number:03d}" for number in range(1_000)]
    world.deploy(flights({name: partitions(2) for name in names}))
    inner, budget = world.ports.ledger, 400

    class Dying(LedgerBetween):
        def before(self, writes: Any) -> None:
            nonlocal budget
            budget -= 1
            if budget < 0:
                raise Crash("the Lambda is gone")

    world.ports = replace(world.ports, ledger=Dying(inner))
    with suppress(Crash):
        world.upload(day(1))
    world.ports = replace(world.ports, ledger=inner)
    world.upload(day(1))
    world.upload(day(1))
    world.settle()

    counts = [[job.leaves["0"].count for job in world.jobs(name)] for name in names]
    assert counts == [[1]] * 1_000


def test_interleaving_07_one_event_counts_for_two_leaves_once(world: World) -> None:
    leaf = {"type": "partition", "dataset": "flights"}
    twice = {"type": "all", "triggers": [{**leaf, "count": 2}, {**leaf, "count": 3}]}
    world.deploy(flights({"twice": {"workflow": "clean", "enabled": True, "trigger": twice}}))
    for _ in range(2):
        world.upload(day(1))
    world.settle()
    [job] = world.jobs("twice")
    assert {leaf: progress.count for leaf, progress in job.leaves.items()} == {"0": 1, "1": 1}


def test_interleaving_18_an_always_failing_row_blocks_no_other(world: World) -> None:
    world.deploy(flights({"tick": at("@every 2m", "notify")}))
    schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.tick")
    assert schedule_state is not None
    world.hints.lose = True
    emit.emit_due(world.ports)
    # A fire of a schedule whose definition cannot be read: every check of it fails.
    bad = replace(
        world.jobs("tick")[0], sort_key="FIRE#0#bad", job_id="demo.flights.tick.1.bad", leaf=None, schedule="bad"
    )
    world.ports.ledger.put_all([Put(bad)])
    world.clock.pass_by("3m")
    world.hints.lose = False

    hinted = sweep.sweep_all(world.ports)
    assert hinted >= 2
    assert sweep.sweep_all(world.ports) == 0, "leased: a backlog is hinted once, not every minute"
    world.settle()
    assert len(world.runs("tick")) == 1


def test_interleaving_25_a_duplicate_of_finished_fire_is_ignored(world: World) -> None:
    world.deploy(flights({"tick": at("@every 2m", "notify"), "emr": at("@every 2m", "clean")}))
    stalled: list[Job] = [*world.jobs("tick"), *world.jobs("emr")]
    assert len(stalled) == 2
    world.pass_by("121s")
    world.finish()
    sent, calls = len(world.targets.queue.messages), len(world.targets.emr.calls)

    world.ports.ledger.put_all([Put(fire) for fire in stalled])
    world.clock.pass_by("30s")
    sweep.sweep_all(world.ports)
    world.settle()

    assert (len(world.targets.queue.messages), len(world.targets.emr.calls)) == (sent, calls)
    places = [job.sort_key for job in (*world.jobs("tick"), *world.jobs("emr"))]
    assert not {fire.sort_key for fire in stalled} & set(places), (
        "the duplicates are gone, and nothing hints them any more"
    )


def test_interleaving_18_a_long_backlog_is_swept_once_per_row(world: World) -> None:
    world.deploy(flights({"delivered": partitions(9, "notify")}))
    world.hints.lose = True
    for number in range(1_200):
        world.run_now("delivered", f"r{number}")
    world.hints.lose = False

    world.clock.pass_by("1m")
    hinted = []
    for _ in range(4):
        hinted.append(sweep.sweep_all(world.ports))
    assert hinted == [500, 500, 200, 0]
    world.hints.sent = world.hints.sent[:1_000]  # and two hundred of these are lost again
    for _ in range(4):
        world.settle()
        world.clock.pass_by("1m")
        world.tick()
    assert len({run_id for run_id, _ in world.targets.queue.messages}) == 1_200
    assert len(world.targets.queue.messages) == 1_200


def test_interleaving_20_event_older_than_its_marker_is_refused(world: World) -> None:
    """A message returns from the dead letters after three weeks. Its partition is still in the registry."""
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.clock.wait_until(world.clock.now() + 21 * DAY)
    world.upload(day(1))
    world.settle()
    assert len(world.runs("daily")) == 1


def test_interleaving_28_a_steady_stream_does_not_delay_a_claim(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    inner, stream = world.ports.ledger, iter(range(2, 12))

    class BusyLedger(LedgerBetween):
        """A ledger that applies another event to the same job before each claim."""

        def before(self, writes: Any) -> None:
            if has_kind("DeleteJob")(writes):
                number = next(stream, None)
                if number is not None:
                    objects.match_object(
                        replace(world.ports, ledger=inner),
                        event_partitions.ObjectCreated("lake-bucket", day(number), world.clock.now()),
                    )

    world.ports = replace(world.ports, ledger=BusyLedger(inner))
    world.upload(day(1))
    world.settle()

    events = [len(world.context(run)["events"]) for run in world.runs("daily")]
    assert max(events) == 2, "the event that came during the claim went with it"


def test_a_status_counts_only_if_waited_for_at_acceptance(world: World) -> None:
    world.deploy(flights({"a": partitions(), "b": after("clean", "join", enabled=False)}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.clock.wait_until(world.clock.now() + MINUTE)
    world.enable("b")
    world.settle()
    assert world.runs("b") == []


def _partition_event(world: World, number: str) -> Event:
    known = world.ports.catalog.dataset_of("lake-bucket", day(1))
    assert known is not None
    name, dataset = known
    return partition_event(name, dataset, ("2013", "1", number), world.clock.now(), world.clock.now())
