"""``why`` begins with the last run that went wrong, in words that fit the trigger (C14)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.flow.views import explain_dag
from tests.acceptance.undelivered import NEVER
from tests.acceptance.words import (
    Document,
    absent,
    alarm,
    all_of,
    day,
    doze,
    elapsed,
    event,
    on,
    partition,
    quiet,
    size,
    status,
    time,
    to_queue,
    why_schedule,
)
from tests.support.answers import read
from tests.support.schedules import partitions
from tests.support.world import World, flights

DAILY = partitions(by=["day"])


def failed(world: World, document: Document, *numbers: int, details: str = "boom") -> World:
    world.deploy(flights({"s": document}))
    for number in numbers:
        world.upload(day(number))
        world.settle()
        world.finish("FAILED", details)
        world.settle()
        world.clock.pass_by("1m")
    return world


def told(world: World, name: str = "s") -> str:
    return str(why_schedule(world, name)["why"])


def test_c14_the_last_failure_comes_first_with_what_to_do(world: World) -> None:
    failed(world, partitions(), 1, details="ValueError: no column fare\n  at line 3")
    [run] = world.runs("s")
    why = told(world)
    said = f"nothing waits; run {run.run_id} failed at 2026-03-02T12:00:00.000Z: "
    assert why.startswith(said)
    assert f"ValueError: no column fare (run it again: sluice runs rerun {run.run_id})" in why
    assert "at line 3" not in why
    assert why.endswith("no partition has arrived since the last run; trigger: 1 partition of demo.flights")
    [view] = why_schedule(world, "s")["failures"]
    assert (view["run_id"], view["attempt"], view["attempts"], view["state"]) == (run.run_id, 1, 1, "FAILED")


def test_c14_the_attempt_of_the_last_failure_is_named(world: World) -> None:
    document = partitions(retries={"attempts": 2, "delay": "1s"})
    failed(world, document, 1)
    world.pass_by("5s")
    world.finish("FAILED", "boom again")
    world.settle()
    assert "in attempt 2 of 2" in told(world) and "boom again" in told(world)


def test_c14_what_ran_since_ends_a_failure(world: World) -> None:
    failed(world, partitions(), 1)
    world.upload(day(2))
    world.settle()
    assert "failed" not in told(world), "another run is on its way"
    world.finish()
    world.settle()
    assert why_schedule(world, "s")["failures"] == []
    assert told(world).startswith("no partition has arrived since the last run")


def test_c14_with_by_each_day_that_failed_is_named(world: World) -> None:
    failed(world, DAILY, 1, 2, 3, 4, 5)
    world.upload(day(2, name="_SUCCESS"))
    world.upload(day(6))
    world.settle()
    world.finish()
    world.settle()
    answer = why_schedule(world, "s")
    assert [view["partition"] for view in answer["failures"]] == [{"day": str(number)} for number in (5, 4, 3, 2, 1)]
    why = str(answer["why"])
    assert [f"for day={number} failed" in why for number in (5, 4, 3, 2, 1)] == [True, True, True, False, False]
    assert "2 more failed" in why


def test_c14_what_waits_is_told_before_what_failed(world: World) -> None:
    failed(world, partitions(count=1), 1)
    world.put("s", partitions(count=2))
    world.upload(day(2))
    world.settle()
    assert told(world).startswith("waits for 1 partition")
    assert len(why_schedule(world, "s")["failures"]) == 1


def test_c14_a_paused_schedule_says_its_state_then_its_failure(world: World) -> None:
    failed(world, partitions(pause_after_failures=1), 1)
    assert told(world).startswith("the schedule has been paused (hold)")
    assert "; nothing waits; run " in told(world)


def test_c14_a_lost_delivery_says_how_it_is_sent_again(world: World) -> None:
    world.deploy(flights({"s": to_queue(event("go"))}))
    world.targets.queue.answers = [NEVER]
    world.post("go")
    world.settle()
    world.pass_by("2m")
    [run] = world.runs("s")
    assert run.state == "FAILED"
    assert f"(deliver it again: sluice dead-letters redrive {run.run_id})" in told(world)


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (time("0 5 * * *"), "the next fire is at 2026-03-03T05:00:00.000Z; trigger: at 05:00"),
        (partition(), "no partition has arrived yet; trigger: 1 partition"),
        (size("1 GB"), "no object has arrived yet; trigger: "),
        (event("go"), "no event has arrived yet; trigger: "),
        (status("demo.flights.clean"), "no upstream run has reached its status yet; trigger: "),
        (alarm("late"), "no change of the alarm has arrived yet; trigger: "),
        (absent(partition(), within="2h"), "nothing has been missing yet; trigger: no partition"),
        (elapsed("4h"), "its span has not passed yet; trigger: "),
        (quiet(partition(), "10m"), "no partition has arrived yet; trigger: "),
        (all_of(partition(), event("go")), "no partition has arrived and no event has arrived yet; trigger: "),
        (
            {"type": "any", "triggers": [time("0 5 * * *"), partition()]},
            "no partition has arrived yet; the next fire is at 2026-03-03T05:00:00.000Z; trigger: ",
        ),
    ],
    ids=lambda given: given["type"] if isinstance(given, dict) else "",
)
def test_c14_the_words_fit_the_trigger(world: World, trigger: Document, words: str) -> None:
    world.deploy(flights({"s": to_queue(trigger)}))
    assert told(world).startswith(words)


def test_c14_a_clock_that_failed_tells_its_next_fire(world: World) -> None:
    world.deploy(flights({"s": on(time("0 13 * * *"))}))
    doze(world, "61m")
    world.finish("FAILED", "boom")
    world.settle()
    why = told(world)
    assert "boom" in why and "no event" not in why
    assert "; the next fire is at 2026-03-03T13:00:00.000Z; trigger: " in why


# -- DAGs --------------------------------------------------------------------------------------------------------------


def dag(world: World, **more: Any) -> dict[str, Any]:
    nodes = {"load": {"workflow": "clean"}, "report": {"workflow": "join"}}
    edges = [{"from": "load", "to": "report"}]
    document = {"enabled": True, "trigger": partition(), "nodes": nodes, "edges": edges} | more
    world.deploy(flights({}) | {"dags": {"daily": document}})
    return document


def of_dag(world: World) -> Any:
    return read(explain_dag.why_dag(world.ports, "demo.flights.daily"))


def test_c14_a_dag_names_the_node_that_failed(world: World) -> None:
    dag(world)
    assert str(of_dag(world)["why"]).startswith("no partition has arrived yet; trigger: ")
    world.upload(day(1))
    world.settle()
    assert "node load is" in str(of_dag(world)["why"])
    world.finish("FAILED", "boom")
    world.settle()
    answer = of_dag(world)
    [view] = answer["failures"]
    assert (view["node"], view["state"], str(view["error"])) == ("load", "FAILED", "boom")
    again = f"sluice dags rerun demo.flights.daily {view['dag_run']} --from load"
    assert str(answer["why"]).startswith(f"node load, run {view['run_id']} for day=1 ")
    assert f"boom (run it again: {again})" in str(answer["why"])


def test_c14_a_dag_that_has_succeeded_since_has_no_failure(world: World) -> None:
    dag(world)
    for number, state in ((1, "FAILED"), (2, "SUCCESS")):
        world.upload(day(number))
        world.settle()
        for _ in range(2):
            world.finish(state)
            world.settle()
        world.clock.pass_by("1m")
    assert of_dag(world)["failures"] == []


def test_c14_a_dag_with_by_names_each_day_that_failed(world: World) -> None:
    dag(world, by=["day"])
    for number, state in ((1, "FAILED"), (2, "FAILED"), (3, "SUCCESS")):
        world.upload(day(number))
        world.settle()
        for _ in range(2):
            world.finish(state)
            world.settle()
        world.clock.pass_by("1m")
    assert [view["partition"] for view in of_dag(world)["failures"]] == [{"day": "2"}, {"day": "1"}]
