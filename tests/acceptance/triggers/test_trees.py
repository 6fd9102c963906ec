"""Triggers combined (T14), one event for many (T16), and correlation (T19)."""

from __future__ import annotations

from chalicelib.core.instants import HOUR, MINUTE
from tests.acceptance.words import (
    all_of,
    any_of,
    at_least,
    day,
    days,
    doze,
    event,
    kinds,
    on,
    partition,
    quiet,
    reasons,
    status,
    time,
    why,
)
from tests.support.clock import NOON
from tests.support.schedules import BY_DAY, partitions
from tests.support.world import World, flights


def test_t14_at_least_n_triggers_start_run_and_all_are_consumed(world: World) -> None:
    world.deploy(flights({"vote": on(at_least(2, event("a"), event("b"), event("c", count=2)))}))
    world.post("c")
    world.post("a")
    world.post("a")
    world.settle()
    assert why(world, "vote")["missing"] == ["1 event b or 1 event c"]

    world.post("b")
    world.settle()
    [run] = world.runs("vote")
    assert len(world.context(run)["events"]) == 4
    world.post("c")
    world.settle()
    assert why(world, "vote")["missing"] == ["2 more of: 1 event a or 1 event b or 1 event c"]


def test_t14_firing_consumes_every_leaf_also_the_half_met_ones(world: World) -> None:
    world.deploy(flights({"either": on(any_of(event("a"), event("b", count=2)))}))
    world.post("b")
    world.settle()
    world.post("a")
    world.settle()
    assert len(world.runs("either")) == 1

    world.post("b")
    world.settle()
    assert len(world.runs("either")) == 1
    world.post("b")
    world.settle()
    assert len(world.runs("either")) == 2


def test_t14_nested_groups_start_a_run(world: World) -> None:
    nested = all_of(any_of(event("a"), event("b")), at_least(2, event("c"), event("d"), partition()))
    world.deploy(flights({"nested": on(nested)}))
    for kind in ("c", "d"):
        world.post(kind)
    world.settle()
    assert why(world, "nested")["missing"] == ["1 event a or 1 event b"]
    world.post("b")
    world.settle()
    assert len(world.runs("nested")) == 1


def test_t14_a_time_and_data_combine_in_one_trigger(world: World) -> None:
    world.deploy(flights({"both": on(all_of(time("0 13 * * *"), partition()))}))
    world.upload(day(1))
    world.settle()
    assert world.runs("both") == []
    doze(world, "1h")
    [run] = world.runs("both")
    assert run.claimed_at == NOON + HOUR
    assert sorted(event["kind"] for event in world.context(run)["events"]) == ["partition", "time"]


def test_t14_an_expired_partial_match_is_dropped_on_record(world: World) -> None:
    world.deploy(flights({"pair": on(all_of(partition("flights"), partition("weather"), within="1h"))}))
    world.upload(day(1))
    world.settle()
    assert "2026-03-02T13:00:00.000Z" in why(world, "pair")["wakes"]
    doze(world, "59m")
    assert len(world.jobs("pair")) == 1
    world.pass_by("1m")
    assert world.jobs("pair") == []
    answer = "the partial match was not completed within 1h and is dropped: 1 partition of demo.flights came at"
    assert reasons(world, "pair") == [f"EXPIRED: {answer} 2026-03-02T12:00:00.000Z"]

    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert world.runs("pair") == []
    world.pass_by("30m")
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("pair")] == [["1", "2"]]


def test_t14_an_event_after_the_window_does_not_complete_a_match(world: World) -> None:
    """No check has come since the window ended. The event finds the partial match expired, puts it on record, and
    begins a new match.
    """
    world.deploy(flights({"pair": on(all_of(partition("flights"), partition("weather"), within="1h"))}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("61m")
    world.upload(day(1, "weather", "a.csv"))
    world.settle()

    assert world.runs("pair") == []
    assert kinds(world, "pair") == ["EXPIRED"]
    [job] = world.jobs("pair")
    assert (set(job.leaves), job.created_at) == ({"1"}, NOON + 61 * MINUTE)
    world.upload(day(2))
    world.settle()
    [run] = world.runs("pair")
    assert len(world.context(run)["events"]) == 2


def test_t16_one_event_counts_for_many_schedules_and_leaves(world: World) -> None:
    two_leaves = on(all_of(partition(count=1), any_of(partition(count=2), event("go"))))
    world.deploy(flights({"a": partitions(), "b": partitions(2), "both": two_leaves}))
    world.upload(day(1))
    world.upload(day(1))
    world.settle()
    assert (len(world.runs("a")), len(world.runs("b")), len(world.runs("both"))) == (1, 0, 0)
    assert {leaf: progress.count for leaf, progress in world.jobs("both")[0].leaves.items()} == {"0": 1, "1": 1}

    world.upload(day(2))
    world.settle()
    assert (len(world.runs("a")), len(world.runs("b")), len(world.runs("both"))) == (2, 1, 1)
    [run] = world.runs("both")
    assert days(world, run) == ["1", "2"]


def test_t16_duplicate_and_reordered_notifications_count_once(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, dataset="weather")}))
    first, second = day(1, "weather", "a.csv"), day(1, "weather", "b.csv")
    for key in (second, first, first, second):
        world.upload(key)
    world.settle()
    [job] = world.jobs("daily")
    assert job.leaves["0"].count == 1

    world.upload(day(2, "weather", "a.csv"))
    world.settle()
    assert len(world.runs("daily")) == 1


def test_t16_a_status_reported_twice_counts_once(world: World) -> None:
    world.deploy(flights({"a": partitions(), "second": on(status("clean", count=2), "join")}))
    world.upload(day(1))
    world.settle()
    [job_run] = world.targets.emr.runs
    for state in ("SUCCESS", "RUNNING", "SUCCESS"):
        world.emr_says(job_run, state)
        world.settle()
    assert world.runs("second") == []
    assert why(world, "second")["missing"] == ["demo.flights.clean to reach COMPLETED"]


def test_t19_each_correlation_gathers_by_itself(world: World) -> None:
    joined = on(all_of(partition("flights"), partition("weather")), "join", by=BY_DAY)
    world.deploy(flights({"join": joined}))
    for number in (1, 2, 3):
        world.upload(day(number))
    world.settle()
    assert len(world.jobs("join")) == 3
    for number in (3, 1):
        world.upload(day(number, "weather", "a.csv"))
    world.settle()

    assert sorted(days(world, run) for run in world.runs("join")) == [["1", "1"], ["3", "3"]]
    assert why(world, "join")["correlation"] == {"year": "2013", "month": "01", "day": "2"}


def test_t19_the_quiet_of_a_month_concerns_its_own_days(world: World) -> None:
    world.deploy(flights({"month": on(quiet(partition(), "10m"), "join", by=["month"])}))
    world.upload(day(1))
    world.upload("raw/flights/year=2013/month=2/day=1/_SUCCESS")
    world.pass_by("5m")
    world.upload(day(2))
    world.pass_by("5m")
    [run] = world.runs("month")
    assert (run.correlation, days(world, run)) == ({"month": "2"}, ["1"])

    world.pass_by("5m")
    late = world.runs("month")[1]
    assert (late.correlation, days(world, late)) == ({"month": "01"}, ["1", "2"])
    assert late.claimed_at == NOON + 15 * MINUTE


def test_t19_a_custom_event_is_of_the_day_in_its_payload(world: World) -> None:
    world.deploy(flights({"join": on(all_of(partition(), event("checked")), "join", by=["day"])}))
    for number in (1, 2):
        world.upload(day(number))
    world.post("checked", day="2")
    world.settle()
    [run] = world.runs("join")
    assert run.correlation == {"day": "2"}


def test_t19_an_event_lacking_the_keys_counts_nowhere_on_record(world: World) -> None:
    world.deploy(
        flights({"a": partitions(2), "join": on(all_of(status("clean"), partition("weather")), "join", by=["day"])})
    )
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    world.finish()
    world.settle()
    assert world.jobs("join") == []
    [record] = world.records("join")
    assert record.kind == "DROPPED"
    assert "carries no value of every correlation key (day)" in record.reason.text
