"""The plan of a re-processing: which schedules run again, for which partitions, and in which order (L21)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.backfills import lineage
from chalicelib.core.backfills.lineage import Follower, Source, Step
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.triggers import tree
from tests.support.schedules import BY_DAY, after, partitions

DAY = {"year": "2026", "month": "3", "day": "1"}


def graph(documents: dict[str, dict[str, Any]]) -> dict[str, list[Follower]]:
    """The subscriptions of these schedules, as the put of each stores them."""
    found: dict[str, list[Follower]] = {}
    for name, document in documents.items():
        given = {key: value for key, value in document.items() if key != "enabled"}
        schedule, full = Schedule.model_validate(given).resolved("demo", "flights"), f"demo.flights.{name}"
        rows: dict[str, list[Subscription]] = {}
        for leaf in tree.leaves(schedule.trigger):
            for key in leaf.trigger.event_keys():
                rows.setdefault(key, []).append(Subscription(key, full, 1, 1, leaf.id, 0))
        for key, own in rows.items():
            source = Source(schedule.workflow, full, full, version=3)
            found.setdefault(key, []).append(Follower(full, schedule, tuple(own), 1, 1, (source,)))
    return found


def ready(dataset: str = "flights", **values: str) -> Event:
    full = f"demo.{dataset}"
    partition = values or DAY
    return Event(f"{full}{partition}", "partition", f"partition:{full}", 5, 5, partition, full)


def planned(documents: dict[str, dict[str, Any]], *events: Event, **asked: Any) -> list[tuple[str, list[str]]]:
    """The schedules of a plan in order, each with the partitions for which it runs."""
    steps = lineage.plan(graph(documents), events or (ready(),), **asked).steps
    return [(step.schedule.removeprefix("demo.flights."), list(step.entries)) for step in steps]


CHAIN = {
    "report": after("join", "report", by=BY_DAY),
    "join": after("clean", "join", by=BY_DAY),
    "clean": partitions(by=BY_DAY),
}


def test_l21_everything_downstream_runs_in_order() -> None:
    assert planned(CHAIN) == [("clean", ["2026/3/1"]), ("join", ["2026/3/1"]), ("report", ["2026/3/1"])]


def test_l21_only_runs_the_schedules_of_the_partition() -> None:
    assert planned(CHAIN, downstream=False) == [("clean", ["2026/3/1"])]


def test_l21_upto_ends_with_the_named_workflow() -> None:
    beside = CHAIN | {"beside": after("clean", "beside", by=BY_DAY)}
    assert planned(beside, upto="demo.flights.join") == [("clean", ["2026/3/1"]), ("join", ["2026/3/1"])]
    with pytest.raises(SluiceError, match="a workflow that would run again: demo.flights.clean"):
        planned(beside, upto="demo.flights.nothing")


def test_l21_a_step_names_what_starts_it() -> None:
    first, second, _ = lineage.plan(graph(CHAIN), [ready()]).steps
    assert (first.after, first.upstream, first.why) == ((), None, "counts partitions of demo.flights")
    assert (second.after, second.upstream) == ((0,), "demo.flights.clean")
    assert second.why == "counts COMPLETED of demo.flights.clean, which demo.flights.clean runs"


def test_l21_a_schedule_of_two_upstreams_runs_once_after_both() -> None:
    triggers = [after("left", "x")["trigger"], after("right", "x")["trigger"]]
    documents = {
        "both": {"workflow": "both", "trigger": {"type": "all", "triggers": triggers}, "by": BY_DAY},
        "left": partitions(workflow="left", by=BY_DAY),
        "right": after("left", "right", by=BY_DAY),
    }
    steps = lineage.plan(graph(documents), [ready()]).steps
    assert [step.schedule.rpartition(".")[2] for step in steps] == ["left", "right", "both"]
    assert (steps[2].entries, steps[2].after) == (("2026/3/1",), (0, 1))


def test_l21_correlation_keys_join_partitions_into_one_run() -> None:
    documents = {"clean": partitions(by=BY_DAY), "month": after("clean", "month", by=["year", "month"])}
    days = [ready(year="2026", month="3", day=str(number)) for number in (1, 2, 3)]
    assert planned(documents, *days) == [("clean", ["2026/3/1", "2026/3/2", "2026/3/3"]), ("month", ["2026/3"])]


def test_l21_a_month_does_not_reach_a_schedule_by_day() -> None:
    documents = {"month": partitions(by=["year", "month"]), "day": after("clean", "day", by=BY_DAY)}
    assert planned(documents) == [("month", ["2026/3"])], "its statuses lack the day, as they did the first time"


def test_l21_a_schedule_without_correlation_keeps_partitions() -> None:
    documents = {"clean": partitions(), "report": after("clean", "report")}
    days = [ready(year="2026", month="3", day=str(number)) for number in (1, 2)]
    assert planned(documents, *days) == [(name, ["2026/3/1", "2026/3/2"]) for name in ("clean", "report")]


def test_l21_what_waits_for_a_failure_is_not_downstream() -> None:
    documents = {"clean": partitions(by=BY_DAY), "alarm": after("clean", "alarm", "FAILED", "KILLED", by=BY_DAY)}
    assert planned(documents) == [("clean", ["2026/3/1"])]


def test_l21_a_leaf_counts_only_its_schedule_and_version() -> None:
    def waits(**fields: Any) -> dict[str, Any]:
        document = after("clean", "next", by=BY_DAY)
        return document | {"trigger": document["trigger"] | fields}

    documents = {
        "clean": partitions(by=BY_DAY),
        "of_other": waits(schedule="other"),
        "of_old": waits(version=2),
        "of_this": waits(schedule="clean", version=3),
    }
    assert [name for name, _ in planned(documents)] == ["clean", "of_this"]


def test_l21_statuses_in_a_circle_end_the_plan() -> None:
    documents = {"clean": partitions(by=BY_DAY), "a": after("b", "a", by=BY_DAY)}
    documents |= {"b": {"workflow": "b", "by": BY_DAY, "trigger": {"type": "any", "triggers": [
        after("clean", "b")["trigger"], after("a", "b")["trigger"]]}}}  # fmt: skip
    steps = lineage.plan(graph(documents), [ready()]).steps
    assert sorted(step.schedule for step in steps) == [f"demo.flights.{name}" for name in ("a", "b", "clean")]
    assert all(cause < number for number, step in enumerate(steps) for cause in step.after)


def test_l21_an_unknown_dataset_reaches_nothing() -> None:
    assert planned(CHAIN, ready("weather")) == []


def test_l21_a_plan_of_too_many_schedules_is_refused() -> None:
    documents = {f"s{number}": partitions(by=BY_DAY) for number in range(lineage.MAX_STEPS + 1)}
    with pytest.raises(SluiceError, match="at most 100 schedules"):
        planned(documents)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_l21_each_step_comes_after_what_starts_it(edges: list[tuple[int, int]]) -> None:
    """A random graph without cycles: each schedule comes after all that start it, and no other schedule
    is in the plan.
    """
    documents: dict[str, dict[str, Any]] = {"w0": partitions(workflow="w0", by=BY_DAY)}
    ways = {(min(pair), max(pair)) for pair in edges if pair[0] != pair[1]}
    for number in range(7, 0, -1):
        causes = [after(f"w{start}", "x")["trigger"] for start, end in sorted(ways) if end == number]
        if causes:
            documents[f"w{number}"] = {
                "workflow": f"w{number}",
                "by": BY_DAY,
                "trigger": {"type": "any", "triggers": causes},
            }
    steps = lineage.plan(graph(documents), [ready()]).steps
    place = {step.workflow.rpartition("w")[2]: number for number, step in enumerate(steps)}
    reached = {0}
    for start, end in sorted(ways):
        if start in reached:
            reached.add(end)
    assert {int(name) for name in place} == reached
    for start, end in ways:
        if {start, end} <= reached:
            assert place[str(start)] < place[str(end)] and place[str(start)] in steps[place[str(end)]].after


def test_l21_steps_after_a_failed_one_are_skipped() -> None:
    steps: list[tuple[int, ...]] = [(), (0,), (), (1, 2), (2,)]
    assert lineage.skipped_by(steps, {0}) == {1, 3}
    assert lineage.skipped_by(steps, set()) == set()


def test_l21_a_step_knows_its_generation_and_keys() -> None:
    [step] = lineage.plan(graph({"clean": partitions(by=["year"])}), [ready()]).steps
    assert step == Step("demo.flights.clean", "demo.flights.clean", 1, 1, ("year",), ("2026",), (), None, step.why)
