"""Orders of claims, starts, completions and closings; the numbers are those of docs/internals/interleavings.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.targets.answers import NotNow
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.jobs.queue import serve
from tests.support.ledgers import Before, has_kind
from tests.support.schedules import after, at_most, partitions
from tests.support.world import APPLICATION, World, day, flights

LIMIT = "workflow:demo.flights.clean"


def before(world: World, kind: str, act: Callable[[], object]) -> None:
    """Call a function right before the first commit with such a write, as another machine would."""
    world.ports = world.with_ports(ledger=Before(world.ports.ledger, act, has_kind(kind)))


def test_interleaving_01_jobs_queued_for_pace_stop_at_a_disable(world: World) -> None:
    world.deploy(flights({"daily": partitions(by=["day"])}))
    for number in range(300):
        world.upload(day(number))
    world.settle()
    world.pass_by("10s")
    started = len(world.targets.emr.calls)
    assert 29 <= started <= 31, "a burst of twenty, then one a second"

    world.disable("daily")
    world.pass_by("10m")

    assert len(world.targets.emr.calls) == started
    assert [record.kind for record in world.records("daily")] == ["DROPPED"] * (300 - started)
    assert (world.limit_state("emr:starts").waiters, world.limit_state(LIMIT).active) == (0, started)


def test_interleaving_09_the_last_run_ends_as_a_job_joins_queue(world: World) -> None:
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))

    # The check has seen the limit reached. Before the job is queued, the slot is released, and no waiter exists.
    before(world, "JoinQueue", world.finish)
    world.settle()

    assert len(world.runs("daily")) == 2
    limit = world.limit_state(LIMIT)
    assert (limit.active, limit.waiters) == (1, 0)


def test_interleaving_10_a_freed_slot_goes_to_a_waiter_first(world: World) -> None:
    low = partitions(dataset="weather", by=["day"], priority=1, **at_most(1))
    world.deploy(flights({"urgent": partitions(by=["day"], priority=9, **at_most(1)), "low": low}))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()

    world.hints.lose = True  # the queue is not served at once
    world.finish()
    world.hints.lose = False
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert world.runs("low") == [], "there is a free slot, but a job waits for it"

    serve(world.ports, LIMIT)
    assert len(world.runs("urgent")) == 2
    assert world.runs("low") == []


def test_interleaving_13_a_slow_decision_does_not_hit_next_job(world: World) -> None:
    aborting = partitions(constraints=[{"type": "concurrency", "max": 1, "on_unmet": "abort"}])
    world.deploy(flights({"daily": aborting, "other": partitions(dataset="weather", by=["day"])}))
    world.upload(day(1, "weather", "x.csv"))
    world.upload(day(1))

    def claimed_by_another() -> None:
        """The slot is freed, another invocation claims J1, its run ends, and J2 is created."""
        world.finish()
        schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.daily")
        assert schedule_state is not None
        check_job(world.ports, ("demo.flights.daily", schedule_state.generation, "GATHERING"))
        world.upload(day(2))

    [first] = world.jobs("daily")
    world.settle_only("other")
    before(world, "DeleteJob", claimed_by_another)
    world.settle()

    assert first.job_id in [run.run_id for run in world.runs("daily")]
    assert first.job_id not in [record.id for record in world.records("daily")]


def test_interleaving_14_a_retry_waits_where_others_are_aborted(world: World) -> None:
    retried = {"target": {"type": "emr_serverless", "entry_point": "s3://code/a.py"}, "retries": {"attempts": 2}}
    abort = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "abort"}]}
    schedules = {
        "a": partitions(workflow="fragile", by=["day"], **abort),
        "on_failure": after("fragile", "join", "FAILED"),
    }
    world.deploy(flights(schedules, fragile=retried))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "broken")
    world.upload(day(2))
    world.settle()

    world.pass_by("1m")
    [retry] = [job for job in world.jobs("a") if job.kind == "retry"]
    assert retry.state == "PENDING_LAUNCH"
    assert world.runs("on_failure") == []

    world.finish()
    world.settle()
    world.finish("FAILED", "broken again")
    world.settle()
    assert [run.attempt for run in world.runs("a") if run.state == "FAILED"] == [2]
    assert len(world.runs("on_failure")) == 1


def test_interleaving_19_one_of_many_is_disabled_others_start(make_world: Any) -> None:
    world: World = make_world(start_burst=100)
    names = [f"s{number}" for number in range(49)]
    world.deploy(flights({name: partitions() for name in names}))
    world.upload(day(1))
    world.disable("s3")
    world.settle()

    started = {name: len(world.runs(name)) for name in names}
    assert started == {name: int(name != "s3") for name in names}


def test_interleaving_20_the_event_comes_before_the_recorded_id(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    answer: list[str] = []
    before(world, "Put", lambda: answer.append(world.emr_says("jr00001", "RUNNING")))
    world.upload(day(1))
    world.settle()

    [run] = world.runs("daily")
    assert answer == [f"run {run.run_id} is RUNNING"]
    assert run.target_id == f"{APPLICATION}/jr00001"
    world.emr_says("jr00001", "SUCCESS")
    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED"]


def test_interleaving_20_a_lost_answer_still_starts_one_run(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.targets.emr.lose_answers = 1
    world.upload(day(1))
    world.settle()
    world.pass_by("5m")

    assert len(world.targets.emr.calls) == 2
    assert len(world.targets.emr.runs) == 1
    [run] = world.runs("daily")
    assert run.target_id == f"{APPLICATION}/jr00001"


def test_interleaving_20_events_in_any_order_move_a_run_forward(world: World) -> None:
    world.deploy(flights({"daily": partitions(), "next": after("clean", "join")}))
    world.upload(day(1))
    world.settle()
    for state in ("SUCCESS", "RUNNING", "SUCCESS", "FAILED", "CANCELLED"):
        world.emr_says("jr00001", state)
    world.settle()

    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED"]
    assert len(world.runs("next")) == 1
    assert world.limit_state(LIMIT).active == 0


def test_interleaving_21_an_unheard_completion_is_found_in_tick(world: World) -> None:
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1))}))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    world.hints.lose = True
    world.finish()
    world.hints.lose = False
    assert len(world.runs("daily")) == 1

    world.pass_by("1m6s")
    assert len(world.runs("daily")) == 2


def test_interleaving_23_a_slot_is_kept_while_unheard_run_lives(world: World) -> None:
    """A start call gets no answer (it did start), the next is throttled, and the schedule is disabled."""
    world.deploy(flights({"daily": partitions(**at_most(1)), "other": partitions(dataset="weather", **at_most(1))}))
    emr = world.targets.emr
    emr.lose_answers = 1
    world.upload(day(1))
    world.settle()
    emr.answers = [NotNow("throttled")]
    world.pass_by("3s")
    [run] = world.runs("daily")
    assert (run.calls, run.unknown_answer) == (2, True)

    world.disable("daily")
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert world.runs("other") == [], "that run is alive: its slot is not given away"

    world.pass_by("10m")
    assert emr.runs["jr00001"].state == "CANCELLED"
    assert [run.state for run in world.runs("daily")] == ["CANCELLED"]
    assert len(world.runs("other")) == 1


def test_interleaving_27_a_limit_below_active_runs_starts_none(world: World) -> None:
    world.deploy(flights({"daily": partitions(by=["day"])}))
    for number in (1, 2, 3):
        world.upload(day(number))
    world.settle()
    world.clock.pass_by("1s")
    world.put("daily", partitions(by=["day"], **at_most(1)))
    world.upload(day(4))
    world.settle()
    assert len(world.runs("daily")) == 3

    for left in (2, 1):
        world.emr_says(f"jr0000{3 - left}", "SUCCESS")
        world.settle()
        assert (len(world.runs("daily")), world.limit_state(LIMIT).active) == (3, left)
    world.emr_says("jr00003", "SUCCESS")
    world.settle()
    assert (len(world.runs("daily")), world.limit_state(LIMIT).active) == (4, 1)


def test_e8_starts_keep_the_application_pace_by_priority(make_world: Any) -> None:
    world: World = make_world(start_burst=2)
    low = partitions(dataset="weather", by=["day"], priority=1)
    world.deploy(flights({"low": low, "high": partitions(workflow="join", by=["day"], priority=9)}))
    for number in range(1, 5):
        world.upload(day(number, "weather", "x.csv"))
    world.settle()
    for number in range(1, 3):
        world.upload(day(number))
    world.settle()
    assert len(world.targets.emr.calls) == 2

    world.pass_by("10s")
    order = [name.split(".")[2] for name in world.targets.emr.calls]
    assert order == ["low", "low", "high", "high", "low", "low"]
