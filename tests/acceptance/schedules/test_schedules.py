"""Users create, change and run schedules (L1, L2, L3, L7, L9, L11)."""

from __future__ import annotations

import pytest

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.flow import lookup
from chalicelib.flow.schedules import actions
from tests.acceptance.words import concurrency, day, days, doze, on, partition, reasons, states, why_schedule
from tests.support.clock import NOON
from tests.support.schedules import after, at, partitions
from tests.support.world import World, flights, full


def test_l1_schedule_is_created_read_replaced_deleted_recreated(world: World) -> None:
    world.deploy(flights({}))
    world.put("daily", partitions(2))
    schedule_state, schedule = lookup.existing(world.ports, full("daily"))
    assert (schedule_state.mode, schedule_state.version, schedule.workflow) == ("enabled", 1, "demo.flights.clean")

    world.clock.pass_by("1s")
    world.put("daily", partitions(3))
    schedule_state, schedule = lookup.existing(world.ports, full("daily"))
    assert (schedule_state.version, schedule.model_dump()["trigger"]["count"]) == (2, 3)
    assert world.ports.catalog.schedules("demo.flights", 10, None).items == (full("daily"),)

    world.delete("daily")
    assert world.ports.catalog.schedules("demo.flights", 10, None).items == ()
    with pytest.raises(SluiceError, match="no schedule named"):
        lookup.existing(world.ports, full("daily"))

    world.clock.pass_by("1s")
    world.put("daily", partitions(1))
    world.upload(day(1))
    world.settle()
    assert len(world.runs("daily")) == 1


def test_l2_a_new_schedule_is_disabled_and_update_keeps_its_mode(world: World) -> None:
    new = {key: value for key, value in partitions().items() if key != "enabled"}
    world.deploy(flights({"daily": new}))
    world.upload(day(1))
    world.settle()
    assert world.runs("daily") == []
    assert why_schedule(world, "daily")["why"] == "the schedule is disabled: enable it, or run it now"

    world.enable("daily")
    world.put("daily", new | {"properties": {"changed": True}})
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["2"]]

    world.pause("daily")
    world.clock.pass_by("1s")
    world.put("daily", new | {"properties": {"changed": "again"}})
    assert why_schedule(world, "daily")["state"] == "hold"


def test_l3_events_while_disabled_are_ignored_later_ones_count(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    world.disable("daily")
    world.upload(day(2))
    world.clock.pass_by("1s")
    world.enable("daily")
    world.upload(day(3))
    world.settle()
    assert world.runs("daily") == []

    world.upload(day(4))
    world.settle()

    [run] = world.runs("daily")
    assert [event["partition"]["day"] for event in world.context(run)["events"]] == ["3", "4"]


def test_l3_disabling_drops_waiting_jobs_but_not_active_runs(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert (len(world.runs("daily")), len(world.jobs("daily"))) == (1, 1)

    world.disable("daily")
    assert reasons(world, "daily") == ["DROPPED: the schedule was disabled"]
    assert world.limit_state("workflow:demo.flights.clean").waiters == 0
    world.finish()
    world.pass_by("1m")
    assert states(world, "daily") == ["SUCCEEDED"]


def test_l3_fire_times_of_a_disabled_span_are_not_caught_up(world: World) -> None:
    world.deploy(flights({"tick": at("@every 10m", "notify")}))
    world.disable("tick")
    doze(world, "1h")
    world.enable("tick")
    doze(world, "11m")

    assert [run.nominal_at for run in world.runs("tick")] == [NOON + HOUR + 10 * MINUTE]
    assert world.records("tick") == []


def test_l7_a_put_with_a_version_compares_and_sets(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    first, second = (NewSchedule.model_validate(partitions(count)) for count in (3, 4))

    after, new = actions.put(world.ports, full("daily"), first, "ann", if_match=1)
    assert (after.version, new) == (2, False)
    with pytest.raises(SluiceError) as refused:
        actions.put(world.ports, full("daily"), second, "bob", if_match=1)
    assert (refused.value.code, refused.value.status) == ("changed_meanwhile", 412)
    with pytest.raises(SluiceError):
        actions.delete(world.ports, full("daily"), "bob", if_match=1)

    world.clock.pass_by("1s")
    actions.put(world.ports, full("daily"), second, "bob")
    versions = world.ports.catalog.versions(full("daily"), 10)
    assert sorted((each.version, each.definition["trigger"]["count"], each.by) for each in versions) == [
        (1, 2, "tester"),
        (2, 3, "ann"),
        (3, 4, "bob"),
    ]


def test_l7_putting_an_equal_schedule_changes_nothing(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    world.put("daily", partitions(2))
    world.upload(day(2))
    world.settle()

    [run] = world.runs("daily")
    assert days(world, run) == ["1", "2"]
    assert len(world.ports.catalog.versions(full("daily"), 10)) == 1


def test_l9_arguments_merge_those_of_workflow_schedule_run_now(world: World) -> None:
    emr = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    tuned = {"target": emr, "properties": {"mode": "fast", "level": 1, "out": "s3://a/"}}
    world.deploy(
        flights({"daily": partitions(workflow="tuned", properties={"level": 2, "out": "s3://b/"})}, tuned=tuned)
    )
    world.upload(day(1))
    world.run_now("daily", out="s3://c/")
    world.settle()

    by_kind = {run.kind: world.context(run)["properties"] for run in world.runs("daily")}
    assert by_kind == {
        "gathering": {"mode": "fast", "level": 2, "out": "s3://b/"},
        "run_now": {"mode": "fast", "level": 2, "out": "s3://c/"},
    }


def test_l9_a_claimed_run_keeps_old_arguments_later_ones_get_new(
    world: World,
) -> None:
    """A claimed run keeps its arguments, in its retries too; all later claims have the new ones."""
    retried = {"target": {"type": "emr_serverless", "entry_point": "s3://code/a.py"}, "retries": {"attempts": 2}}
    daily = partitions(workflow="fragile", properties={"version": 1})
    world.deploy(flights({"daily": daily}, fragile=retried))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1s")
    world.put("daily", daily | {"properties": {"version": 2}, "on_update": "carry"})
    world.upload(day(2))
    world.settle()
    world.finish("FAILED", "disk full")
    world.pass_by("1m")

    answer = sorted((run.attempt, run.request.properties["version"]) for run in world.runs("daily"))
    assert answer == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_l11_run_now_skips_the_trigger_and_keeps_what_gathers(world: World) -> None:
    world.deploy(flights({"daily": partitions(3, properties={"mode": "fast"})}))
    world.upload(day(1))
    world.settle()

    job_id = world.run_now("daily", "request-1", mode="thorough")
    assert world.run_now("daily", "request-1", mode="thorough") == job_id
    world.settle()
    assert world.run_now("daily", "request-1", mode="thorough") == job_id
    world.settle()

    [run] = world.runs("daily")
    assert (run.run_id, run.fired_by.text) == (job_id, "run now")
    assert world.context(run)["properties"] == {"mode": "thorough"}
    assert [event["kind"] for event in world.context(run)["events"]] == ["run_now"]
    [waiting] = world.jobs("daily")
    assert waiting.leaves["0"].count == 1


def test_l11_run_now_works_on_disabled_schedule_with_constraints(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1)), "other": partitions(dataset="weather")}))
    world.disable("daily")
    world.upload(day(1, "weather", "a.csv"))
    world.settle()

    world.run_now("daily")
    world.settle()
    [job] = world.jobs("daily")
    assert (job.state, job.kind) == ("PENDING_LAUNCH", "run_now")
    world.finish()
    world.settle()
    assert len(world.runs("daily")) == 1


def test_l10_repeats_complete_schedule_and_restart_when_enabled(world: World) -> None:
    world.deploy(flights({"tick": at("R4/PT3S", "notify")}))
    world.pass_by("1m")
    assert [(run.nominal_at or 0) - NOON for run in world.runs("tick")] == [3_000, 6_000, 9_000, 12_000]
    answer = why_schedule(world, "tick")
    assert (answer["state"], answer["next_fire"]) == ("completed", None)

    world.enable("tick")
    world.pass_by("1m")
    assert len(world.runs("tick")) == 8


def test_l11_a_preview_lists_exactly_what_fires(world: World) -> None:
    world.deploy(flights({"tick": at("*/20 * * * *", "notify")}))
    _, schedule = lookup.existing(world.ports, full("tick"))
    previewed = upcoming.preview(schedule, world.clock.now(), 3)
    doze(world, "20m")
    doze(world, "20m")
    doze(world, "20m")

    assert [run.nominal_at for run in world.runs("tick")] == previewed


def test_l11_a_run_now_of_a_partition_is_followed_by_its_day(world: World) -> None:
    keys = ["year", "month", "day"]
    world.deploy(flights({"daily": partitions(3, by=keys), "next": after("clean", "join", by=keys)}))
    first = {"year": "2013", "month": "01", "day": "5"}
    job_id = actions.run_now(world.ports, full("daily"), {}, "r1", None, dict(reversed(first.items())))
    world.settle()
    world.finish()
    world.settle()

    [run] = world.runs("daily")
    assert (run.run_id, run.correlation, list(run.correlation or {})) == (job_id, first, keys)
    assert world.context(run)["correlation"] == first
    [following] = world.runs("next")
    assert following.correlation == first


def test_l11_a_partition_without_its_exact_keys_is_refused(world: World) -> None:
    world.deploy(flights({"daily": partitions(by=["day"]), "plain": partitions()}))
    for name, words in (("daily", "exactly the keys day"), ("plain", "the schedule has no correlation keys")):
        with pytest.raises(SluiceError, match=words) as refused:
            actions.run_now(world.ports, full(name), {}, "r1", None, {"month": "01"})
        assert refused.value.field == "partition"
        assert world.jobs(name) == []
