"""One command stops and starts a namespace, an app or a tag: schedules, DAGs, messages and backfills (L24)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.schedules import stops
from tests.acceptance.words import concurrency, day, days, doze, kinds, on, partition, why, why_schedule
from tests.support import dags
from tests.support.backfills import begin
from tests.support.clock import NOON
from tests.support.dags import dag, ends
from tests.support.schedules import BY_DAY, at, partitions
from tests.support.world import SQS, World, flights, full

STOPPED = "demo has been stopped since 2026-03-02T12:00:00.000Z by ann: repair"


def mode(world: World, name: str) -> str:
    state = world.ports.rows.get(ScheduleState, full(name))
    assert state is not None
    return state.mode


def held_by(world: World, name: str) -> list[str]:
    state = world.ports.rows.get(ScheduleState, full(name))
    assert state is not None
    return [mark[0] for mark in state.stops]


def upload(world: World, number: int) -> None:
    world.upload(day(number))
    world.settle()


def test_l24_a_stopped_namespace_starts_and_loses_nothing(world: World) -> None:
    world.deploy(flights({"daily": partitions(1, by=BY_DAY)}))
    report = world.stop("demo")
    assert (report["changed"], report["complete"]) == (["demo.flights.daily"], True)
    upload(world, 1)
    upload(world, 2)
    world.pass_by("2m")
    assert world.runs("daily") == []
    assert [job.reason.text for job in world.jobs("daily")] == [STOPPED, STOPPED]
    assert why_schedule(world, "daily")["why"].startswith(STOPPED)

    assert world.start("demo")["changed"] == ["demo.flights.daily"]
    world.settle()
    assert sorted(days(world, run) for run in world.runs("daily")) == [["1"], ["2"]]


def test_l24_a_start_brings_back_exactly_what_ran_before(world: World) -> None:
    names = ("runs", "held", "drained", "off")
    world.deploy(flights({name: partitions(1) for name in names}))
    world.pause("held")
    world.pause("drained", "drain")
    world.disable("off")
    before = {name: mode(world, name) for name in names}

    world.stop("demo.flights")
    assert {name: mode(world, name) for name in names} == before
    assert all(held_by(world, name) == ["demo.flights"] for name in names)
    world.start("demo.flights")
    assert {name: mode(world, name) for name in names} == before
    assert not any(held_by(world, name) for name in names)
    upload(world, 1)
    assert [name for name in names if world.runs(name)] == ["runs"]


def test_l24_what_people_change_in_a_stop_stays_so(world: World) -> None:
    world.deploy(flights({"a": partitions(1), "b": partitions(1, enabled=False), "c": partitions(1)}))
    world.stop()
    world.pause("a")
    world.enable("b")
    world.disable("c")
    upload(world, 1)
    world.start()
    world.settle()
    assert [mode(world, name) for name in "abc"] == ["hold", "enabled", "disabled"]
    assert [len(world.runs(name)) for name in "abc"] == [0, 1, 0]


def test_l24_a_stopped_dag_goes_on_where_it_was(world: World) -> None:
    """The run of a node goes on; the nodes after it wait, and a new day waits at the start."""
    world.deploy(dags.app(dag("a -> b")))
    upload(world, 1)
    report = world.stop()
    assert report["changed"] == ["demo.flights.daily"]
    ends(world, "a")
    upload(world, 2)
    world.pass_by("2m")
    [view] = dags.views(world)
    assert {node: each["state"] for node, each in view["nodes"].items()} == {"a": "SUCCEEDED", "b": "WAITING"}
    assert view["nodes"]["b"]["why"] == STOPPED
    world.start()
    world.settle()
    assert [sorted(each) for each in dags.states(world)] == [["a", "b"], ["a", "b"]]
    assert dags.states(world)[0]["b"] == "STARTING"


def test_l24_timeouts_count_in_a_stop_unless_asked_to_stop(world: World) -> None:
    """Both jobs wait for a second day, for two hours at most; an hour is over when they are stopped."""
    waits = {"timeout": {"after": "2h", "then": "abort"}}
    world.deploy(flights({name: partitions(2, **waits, tags={"of": name}) for name in ("counting", "still")}))
    upload(world, 1)
    doze(world, "1h")
    world.stop(tag="of=counting")
    world.stop(tag="of=still", stop_timeouts=True)
    doze(world, "3h")
    assert kinds(world, "counting") == ["ABORTED"]
    assert (len(world.jobs("still")), kinds(world, "still")) == (1, [])

    world.start(tag="of=still")
    doze(world, "59m")
    assert (len(world.jobs("still")), kinds(world, "still")) == (1, [])
    assert "its timeout at 2026-03-02T17:00:00.000Z" in why(world, "still")["wakes"]
    doze(world, "2m")
    assert kinds(world, "still") == ["ABORTED"]
    assert world.records("still")[0].recorded_at == NOON + 5 * HOUR


def test_l24_another_stop_of_timeouts_begins_when_it_is_made(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, timeout={"after": "2h", "then": "abort"})}))
    upload(world, 1)
    world.stop()
    doze(world, "1h")
    world.stop(stop_timeouts=True)
    doze(world, "3h")
    world.start()
    doze(world, "59m")
    assert kinds(world, "daily") == []
    doze(world, "2m")
    assert kinds(world, "daily") == ["ABORTED"]
    assert world.records("daily")[0].recorded_at == NOON + 5 * HOUR


def test_l24_messages_and_requests_wait_too(world: World) -> None:
    world.deploy(flights({"daily": partitions(1)}) | {"default_target": SQS})
    world.message("ping", due_time="1m")
    world.stop()
    world.message("pong", due_time="2m")
    world.run_now("daily")
    world.pass_by("5m")
    assert world.targets.queue.messages == []
    assert world.runs("daily") == []
    world.start()
    world.pass_by("1m")
    assert len(world.targets.queue.messages) == 2
    assert len(world.runs("daily")) == 1


def test_l24_a_backfill_waits_and_goes_on(world: World) -> None:
    world.deploy(flights({"nightly": on({"type": "time", "expression": "0 2 * * *"})}))
    begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-05T00:00:00Z", concurrency=1)
    world.settle()
    assert len(world.runs("nightly")) == 1
    world.stop()
    world.finish()
    world.pass_by("2m")
    assert len(world.runs("nightly")) == 1, "the run that was active has ended, and no other one begins"
    [job] = world.jobs("nightly")
    assert job.reason.text == STOPPED
    world.start()
    world.settle()
    while world.finish():
        world.settle()
    assert len(world.runs("nightly")) == 4
    assert {row.state for row in world.ports.jobs.backfills(full("nightly"))} == {"DONE"}


def test_l24_a_tag_of_the_app_is_inherited(world: World) -> None:
    own = {"a": partitions(1, tags={"team": "b"}), "b": partitions(1)}
    world.deploy(flights(own) | {"tags": {"team": "a", "area": "x"}})
    assert world.stop("demo", "team=a")["changed"] == ["demo.flights.b"]
    assert world.stop("demo", "area")["changed"] == ["demo.flights.a", "demo.flights.b"]
    assert held_by(world, "b") == ["demo#team=a", "demo#area"]


def test_l24_a_tag_of_a_dag_stops_its_nodes(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", tags={"team": "a"}), {"other": partitions(1)}))
    assert world.stop("demo.flights", "team=a")["changed"] == ["demo.flights.daily"]
    upload(world, 1)
    assert [run.request["schedule"] for run in world.targets.emr.runs.values()] == [full("other")]


@pytest.mark.parametrize("first", ["demo", "demo.flights"])
def test_l24_of_two_stops_the_last_start_counts(world: World, first: str) -> None:
    world.deploy(flights({"daily": partitions(1)}))
    world.stop("demo")
    world.stop("demo.flights", reason="other")
    upload(world, 1)
    world.start(first)
    world.pass_by("1m")
    assert world.runs("daily") == []
    world.start("demo.flights" if first == "demo" else "demo")
    world.settle()
    assert len(world.runs("daily")) == 1


def test_l24_what_is_made_in_a_stopped_scope_is_stopped(world: World) -> None:
    world.deploy(flights({}))
    world.stop()
    world.deploy(flights({"put": partitions(1)}))
    world.put("alone", partitions(1))
    dags.put(world, dag("x -> y", nodes={name: {"workflow": "clean"} for name in "xy"}), "graph")
    upload(world, 1)
    world.pass_by("1m")
    assert world.targets.emr.runs == {}
    world.start()
    world.settle()
    assert sorted(run.request["schedule"].split("~")[0] for run in world.targets.emr.runs.values()) == [
        full("alone"),
        full("graph"),
        full("put"),
    ]


def test_l24_a_schedule_that_gets_a_stopped_tag_is_stopped(world: World) -> None:
    world.deploy(flights({"a": partitions(1, tags={"team": "a"}), "b": partitions(1)}))
    world.stop("demo", "team=a")
    world.put("b", partitions(1, tags={"team": "a"}))
    assert held_by(world, "b") == ["demo#team=a"]
    world.put("a", partitions(1))
    assert held_by(world, "a") == []
    world.start("demo", "team=a")
    assert held_by(world, "b") == []


def test_l24_a_schedule_deleted_in_a_stop_is_made_anew(world: World) -> None:
    world.deploy(flights({"daily": partitions(1)}))
    world.stop()
    world.delete("daily")
    world.start()
    world.put("daily", partitions(1))
    assert held_by(world, "daily") == []


def test_l24_a_waiting_job_gives_its_permits_back(world: World) -> None:
    one = [concurrency(1)]
    world.deploy(flights({"daily": partitions(1, by=BY_DAY, constraints=one)}))
    for number in (1, 2):
        upload(world, number)
    assert len(world.runs("daily")) == 1
    world.stop()
    world.finish()
    world.pass_by("2m")
    assert len(world.runs("daily")) == 1
    assert [job.held for job in world.jobs("daily")] == [()]
    world.start()
    world.settle()
    assert len(world.runs("daily")) == 2


def test_l24_a_large_fire_is_spread_again_from_the_start(world: World) -> None:
    spread = {"count": 60, "over": "1h"}
    world.deploy(flights({"backup": at("0 13 * * *", "notify", spread=spread)}))
    world.clock.wait_until(NOON + 3_600_000 - 1)
    world.pass_by("10m")
    sent = len(world.targets.queue.messages)
    assert 9 <= sent <= 12
    world.stop()
    world.pass_by("30m")
    assert len(world.targets.queue.messages) == sent
    world.start()
    world.pass_by("1m")
    assert len(world.targets.queue.messages) <= sent + 3, "not all that was due meanwhile at once"
    world.pass_by("60m")
    assert len(world.targets.queue.messages) == 60


def test_l24_a_repeat_changes_nothing_and_another_reason_is_kept(world: World) -> None:
    world.deploy(flights({"daily": partitions(1)}))
    world.stop()
    world.clock.pass_by("1m")
    assert world.stop()["unchanged"] == ["demo.flights.daily"]
    assert world.stop(reason="longer")["changed"] == ["demo.flights.daily"]
    [stop] = world.stop(reason="longer")["stops"]
    assert (stop["reason"], stop["since"]) == ("longer", "2026-03-02T12:00:00.000Z")
    world.start()
    again = world.start()
    assert (again["changed"], again["unchanged"], again["stops"]) == ([], ["demo.flights.daily"], [])


def test_l24_a_dry_run_says_what_would_change(world: World) -> None:
    world.deploy(flights({"daily": partitions(1)}))
    scope = stops.Scope("demo")
    assert stops.stop(world.ports, scope, "r", "ann", dry_run=True)["changed"] == ["demo.flights.daily"]
    assert held_by(world, "daily") == []
    world.stop()
    assert stops.start(world.ports, scope, dry_run=True)["changed"] == ["demo.flights.daily"]
    assert held_by(world, "daily") == ["demo"]


@pytest.mark.parametrize(
    ("place", "tag", "message"),
    [
        ("nowhere", "", "no namespace named 'nowhere'"),
        ("demo.nowhere", "", "no app named 'demo.nowhere'"),
        ("demo", "team=z", "expected a tag that a schedule, a DAG, a message or an app of demo has, got 'team=z'"),
    ],
)
def test_l24_what_fits_nothing_is_an_error(world: World, place: str, tag: str, message: str) -> None:
    world.deploy(flights({"daily": partitions(1)}))
    acts: list[Any] = [world.stop, world.start]
    for act in acts:
        with pytest.raises(SluiceError) as error:
            act(place, tag)
        assert error.value.message == message


def test_l24_a_namespace_has_at_most_twenty_stops(world: World) -> None:
    world.deploy(flights({"daily": partitions(1, tags={f"t{number}": "" for number in range(20)})}))
    for number in range(20):
        world.stop("demo", f"t{number}")
    with pytest.raises(SluiceError, match="at most 20 stops"):
        world.stop("demo")


def test_l24_a_start_and_a_later_stop_do_not_mix(world: World) -> None:
    """The start of an earlier stop removes no mark of a later one."""
    world.deploy(flights({"daily": on(partition())}))
    upload(world, 1)
    world.finish()
    world.stop()
    world.start()
    world.clock.pass_by("1s")
    world.stop()
    assert held_by(world, "daily") == ["demo"]
    upload(world, 2)
    assert why(world, "daily")["wakes"].startswith("the start of demo")
