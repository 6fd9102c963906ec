"""The sweep finds the work that a lost hint, a killed Lambda or a lost event left behind (O3, W7)."""

from __future__ import annotations

from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights


def test_o3_an_overdue_job_with_a_lost_hint_starts_at_next_tick(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.hints.lose = True
    world.upload(day(1))
    world.hints.lose = False
    assert world.runs("daily") == []

    world.pass_by("1m6s")

    assert len(world.runs("daily")) == 1


def test_o3_a_due_fire_with_a_lost_hint_is_late_but_not_lost(world: World) -> None:
    world.hints.lose = True
    world.deploy(flights({"tick": at("@every 5s", "notify")}))
    world.pass_by("55s")
    world.hints.lose = False
    assert world.runs("tick") == []

    world.pass_by("1m6s")

    nominal = [run.nominal_at for run in world.runs("tick")]
    assert len(nominal) == len(set(nominal)) >= 20


def test_w7_a_run_whose_events_never_came_is_polled(world: World) -> None:
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.targets.emr.runs["jr00001"].state = "SUCCESS"  # and no event arrives

    world.pass_by("4m")

    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED"]
    assert world.limit_state("workflow:demo.flights.clean").active == 0


def test_w7_an_active_run_without_news_is_polled_ever_less_often(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.emr_says("jr00001", "RUNNING")
    asked: list[int] = []
    ask = world.targets.emr.status
    world.targets.emr.status = lambda run: (asked.append(world.clock.now()), ask(run))[1]

    world.pass_by("1h")

    assert 3 <= len(asked) <= 7
    assert [run.state for run in world.runs("daily")] == ["RUNNING"]


def test_w10_an_unlaunched_run_is_launched_once(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    start = world.targets.emr.start
    died: list[str] = []

    def dies(run: object, context: object) -> object:
        died.append("here")
        world.targets.emr.start = start
        raise ConnectionError("the Lambda is gone before the call")

    world.targets.emr.start = dies
    world.upload(day(1))
    try:
        world.settle()
    except ConnectionError:
        died.append("and no message was sent")
    assert len(died) == 2

    world.pass_by("5m")

    assert len(world.targets.emr.runs) == 1
    assert len(world.runs("daily")) == 1


def test_o1_a_tick_with_nothing_due_reads_no_schedule(world: World) -> None:
    world.deploy(flights({f"s{number}": partitions() for number in range(10)}))
    reads: list[str] = []
    catalog = world.ports.catalog

    class Counting:
        def __getattr__(self, name: str) -> object:
            reads.append(name)
            return getattr(catalog, name)

    world.ports = world.with_ports(catalog=Counting())
    world.pass_by("3m")

    assert reads == []
