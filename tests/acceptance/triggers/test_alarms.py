"""CloudWatch alarms of the account start work (T23)."""

from __future__ import annotations

from chalicelib.core.instants import HOUR, MINUTE
from tests.acceptance.words import absent, alarm, all_of, day, doze, on, partition, quiet, reasons, started_at, why
from tests.support.clock import NOON
from tests.support.world import EMR, World, flights


def test_t23_an_alarm_starts_a_run_that_gets_the_change(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full"))}))
    for name, state in (("disk full", "OK"), ("cpu high", "ALARM"), ("disk full", "INSUFFICIENT_DATA")):
        world.alarm(name, state)
    world.settle()
    assert (world.runs("mend"), world.jobs("mend")) == ([], [])

    world.clock.pass_by("1s")
    change = world.alarm("disk full")
    world.settle()
    [run] = world.runs("mend")
    [event] = world.context(run)["events"]
    assert event.pop("id").startswith("cloudwatch_alarm-")
    assert event == {
        "kind": "cloudwatch_alarm",
        "instant": change.at,
        "alarm": "disk full",
        "arn": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:disk full",
        "state": "ALARM",
        "previous_state": "INSUFFICIENT_DATA",
        "reason": "disk full is ALARM",
    }


def test_t23_a_change_delivered_again_counts_once(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full", count=2))}))
    change = world.alarm("disk full")
    doze(world, "1h")
    assert world.deliver_alarm(change) == "applied"
    world.settle()
    assert why(world, "mend")["missing"] == ["alarm 'disk full' to go to ALARM"]

    world.alarm("disk full", "OK")
    again = world.alarm("disk full")
    world.settle()
    assert len(world.runs("mend")) == 1
    world.deliver_alarm(change)
    world.deliver_alarm(again)
    world.settle()
    assert (len(world.runs("mend")), world.jobs("mend")) == (1, [])


def test_t23_changes_in_another_order_all_count(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full", "ALARM", "OK", count=3))}))
    changes = []
    for state in ("ALARM", "OK", "ALARM"):
        changes.append(world.alarm("disk full", state, delivered=False))
        world.clock.pass_by("1s")
    for change in reversed(changes):
        assert world.deliver_alarm(change) == "applied"
    world.settle()
    [run] = world.runs("mend")
    assert {event["instant"] for event in world.context(run)["events"]} == {change.at for change in changes}


def test_t23_a_repeated_state_starts_nothing(world: World) -> None:
    """CloudWatch repeats a state when the actions of a composite alarm are no longer suppressed."""
    world.deploy(flights({"mend": on(alarm("service"))}))
    world.alarm("service")
    world.settle()
    assert len(world.runs("mend")) == 1
    world.clock.pass_by("2m")
    world.alarm("service")
    world.settle()
    assert (len(world.runs("mend")), world.jobs("mend")) == (1, [])


def test_t23_schedules_of_any_namespace_may_wait_for_an_alarm(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full"))}))
    other = {
        "workflows": {"tell": {"target": EMR}},
        "schedules": {"tell": on(alarm("disk full", "OK", "ALARM"), "tell")},
    }
    world.deploy(other, namespace="other", app="ops")
    world.alarm("disk full")
    world.settle()
    assert (len(world.runs("mend")), len(world.runs("other.ops.tell"))) == (1, 1)


def test_t23_a_change_during_a_disable_does_not_count(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full"))}))
    world.disable("mend")
    change = world.alarm("disk full")
    world.clock.pass_by("1s")
    world.enable("mend")
    world.settle()
    assert (world.runs("mend"), world.jobs("mend")) == ([], [])
    assert change.is_new_state


def test_t23_quiet_fires_when_an_alarm_has_stopped_flapping(world: World) -> None:
    world.deploy(flights({"calm": on(quiet(alarm("disk full", "ALARM", "OK"), "10m"))}))
    for state in ("ALARM", "OK", "ALARM", "OK"):
        world.alarm("disk full", state)
        world.pass_by("6m")
    assert world.runs("calm") == []
    world.pass_by("4m")
    [run] = world.runs("calm")
    assert run.claimed_at == NOON + 28 * MINUTE
    assert [event["state"] for event in world.context(run)["events"]] == ["ALARM", "OK", "ALARM", "OK"]


def test_t23_absent_fires_when_an_alarm_did_not_recover_in_time(world: World) -> None:
    world.deploy(flights({"call": on(absent(alarm("disk full", "OK"), within="1h"))}))
    doze(world, "30m")
    world.alarm("disk full", "ALARM")
    world.alarm("disk full", "OK")
    doze(world, "59m")
    assert world.runs("call") == []
    doze(world, "2m")
    assert len(world.runs("call")) == 1


def test_t23_an_alarm_cancels_an_absence_that_has_not_launched(world: World) -> None:
    world.deploy(flights({"call": on(absent(alarm("disk full", "OK"), within="1h"))}))
    world.pause("call")
    doze(world, "61m")
    assert len(world.jobs("call")) == 1
    world.alarm("disk full", "OK")
    world.settle()
    assert world.jobs("call") == []
    assert reasons(world, "call") == ["DROPPED: the absent event arrived before the job was launched"]


def test_t23_an_alarm_and_data_combine_in_one_trigger(world: World) -> None:
    world.deploy(flights({"both": on(all_of(alarm("ready", "OK"), partition()))}))
    world.upload(day(1))
    world.settle()
    assert why(world, "both")["missing"] == ["alarm 'ready' to go to OK"]
    world.clock.wait_until(NOON + HOUR)
    world.alarm("ready", "OK")
    world.settle()
    assert started_at(world, "both") == ["2026-03-02T13:00:00.000Z"]
    [run] = world.runs("both")
    assert [event["kind"] for event in world.context(run)["events"]] == ["partition", "cloudwatch_alarm"]


def test_t19_each_alarm_has_its_own_job(world: World) -> None:
    either = {"type": "any", "triggers": [alarm("disk a", count=2), alarm("disk b", count=2)]}
    world.deploy(flights({"mend": on(either, by=["alarm"])}))
    for name, state in (("disk a", "ALARM"), ("disk b", "ALARM"), ("disk a", "OK"), ("disk a", "ALARM")):
        world.clock.pass_by("1s")
        world.alarm(name, state)
    world.settle()
    [run] = world.runs("mend")
    assert run.correlation == {"alarm": "disk a"}
    assert [job.correlation for job in world.jobs("mend")] == [{"alarm": "disk b"}]
