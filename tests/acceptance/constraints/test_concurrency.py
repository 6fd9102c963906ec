"""Fewer than n active runs of a workflow, or of a group (C1), and which waiting job goes first (W2)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import NotNow
from tests.acceptance.words import concurrency, day, event, on, partition, reasons, states, why
from tests.support.fakes import FakeEmr
from tests.support.pull_workers import PULLED
from tests.support.schedules import at_most, partitions
from tests.support.world import World, flights

GROUP = {"group": "heavy"}


class LingeringEmr(FakeEmr):
    """EMR as it behaves: a cancelled run takes time to end."""

    def cancel(self, run: Run) -> None:
        self.runs[(run.target_id or "").partition("/")[2]].state = "CANCELLING"


def test_c1_a_concurrency_constraint_aborts_on_record_by_default(world: World) -> None:
    world.deploy(flights({"daily": partitions(constraints=[{"type": "concurrency", "max": 1}])}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()

    assert len(world.runs("daily")) == 1
    [record] = world.records("daily")
    assert record.kind == "ABORTED"
    assert "1 of 1 in use" in record.reason.text


def test_c1_a_group_limits_runs_of_several_workflows_together(world: World) -> None:
    world.deploy(
        flights(
            {
                "a": on(partition("flights"), "clean", concurrency(1, **GROUP)),
                "b": on(partition("weather"), "join", concurrency(1, **GROUP)),
                "free": on(partition("weather"), "clean"),
            }
        )
    )
    world.upload(day(1))
    world.settle()
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert (states(world, "a"), states(world, "b"), states(world, "free")) == (["STARTING"], [], ["STARTING"])
    assert why(world, "b")["why"].startswith("waits for a slot of group demo.heavy: 1 of 1 in use")

    world.finish()
    world.settle()
    assert states(world, "b") == ["STARTING"]
    world.finish()
    world.settle()
    limit = world.limit_state("group:demo.heavy")
    assert (limit.active, limit.waiters, dict(limit.starts)) == (0, 0, {})


def test_c1_a_group_of_another_namespace_is_another_group(world: World) -> None:
    own = {"workflows": flights({})["workflows"], "schedules": {"a": on(event("go"), "clean", concurrency(1, **GROUP))}}
    world.deploy(flights({"a": on(event("go"), "clean", concurrency(1, **GROUP))}))
    world.deploy(own, namespace="other", app="apart")
    world.post("go")
    world.post("go", namespace="other")
    world.settle()
    assert (states(world, "a"), states(world, "other.apart.a")) == (["STARTING"], ["STARTING"])


def test_c1_a_job_needing_two_slots_takes_both_or_waits_for_one(world: World) -> None:
    both = on(partition(), "clean", concurrency(2), concurrency(1, **GROUP), by=["day"])
    world.deploy(flights({"both": both}))
    for number in (1, 2, 3):
        world.upload(day(number))
    world.settle()
    for _ in range(3):
        assert len([state for state in states(world, "both") if state == "STARTING"]) == 1
        world.finish()
        world.settle()
    assert states(world, "both") == ["SUCCEEDED"] * 3
    for line in ("workflow:demo.flights.clean", "group:demo.heavy"):
        assert (world.limit_state(line).active, world.limit_state(line).waiters) == (0, 0)


def test_c1_cancel_other_starts_the_new_job_when_old_run_ended(world: World) -> None:
    world.targets.emr = LingeringEmr(world.clock)
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1, "cancel_other"))}))
    world.upload(day(1))
    world.settle()
    [old] = world.targets.emr.runs
    world.emr_says(old, "RUNNING")
    world.clock.pass_by("1m")

    world.upload(day(2))
    world.settle()
    assert world.targets.emr.runs[old].state == "CANCELLING"
    [newcomer] = world.jobs("daily")
    assert newcomer.state == "PENDING_LAUNCH"
    assert states(world, "daily") == ["RUNNING"]

    world.clock.pass_by("10s")
    world.emr_says(old, "CANCELLED")
    world.settle()
    first, second = world.runs("daily")
    assert (first.state, second.state) == ("CANCELLED", "STARTING")
    assert second.run_id == newcomer.job_id
    assert first.claimed_at < second.claimed_at


def test_c1_cancel_other_withdraws_run_that_has_not_started_yet(world: World) -> None:
    """A workflow on EMR and one of pull workers share one slot: EMR throttles the one, and the other takes the slot."""
    one = concurrency(1, "cancel_other", group="cluster")
    elsewhere = {"target": PULLED}
    schedules = {"daily": on(partition(), "clean", one), "urgent": on(partition("weather"), "elsewhere", one)}
    world.deploy(flights(schedules, elsewhere=elsewhere))
    world.targets.emr.answers = [NotNow("throttled")]
    world.upload(day(1))
    world.settle()
    assert world.targets.emr.runs == {}
    world.clock.pass_by("100ms")
    world.upload(day(2, "weather", "a.csv"))
    world.settle()

    [first], [second] = world.runs("daily"), world.runs("urgent")
    assert (first.state, second.state) == ("CANCELLED", "STARTING")
    assert first.reason.text == f"cancelled to make room for job {second.run_id}"
    world.pass_by("3m")
    assert world.targets.emr.runs == {}
    assert world.runs("urgent")[0].state == "STARTING"


def test_c1_cancel_other_cancels_no_more_runs_than_needed(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(2, "cancel_other"))}))
    for number in (1, 2, 3):
        world.upload(day(number))
        world.settle()
        world.clock.pass_by("1m")
    world.settle()
    assert states(world, "daily") == ["CANCELLED", "STARTING", "STARTING"]


def test_c1_a_lowered_limit_starts_nothing_until_a_slot_is_free(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(2), by=["day"])}))
    for number in (1, 2, 3):
        world.upload(day(number))
        world.settle()
    world.clock.pass_by("1s")
    world.put("daily", on(partition(), "clean", concurrency(1), by=["day"], on_update="carry"))
    first, second = world.targets.emr.runs
    world.emr_says(first, "SUCCESS")
    world.settle()
    assert len(world.runs("daily")) == 2
    world.emr_says(second, "SUCCESS")
    world.settle()
    assert len(world.runs("daily")) == 3


def test_c1_a_limit_of_a_target_without_a_lifecycle_is_refused(world: World) -> None:
    with pytest.raises(SluiceError, match="only for a target with a lifecycle"):
        world.deploy(flights({"daily": on(partition(), "notify", concurrency(1))}))


def test_c1_a_job_queued_for_one_slot_keeps_other_until_dropped(world: World) -> None:
    world.deploy(
        flights(
            {
                "heavy": on(partition("weather"), "join", concurrency(1, "abort", **GROUP)),
                "both": on(partition(), "clean", concurrency(1), concurrency(1, **GROUP)),
                "other": on(event("go"), "clean", concurrency(1, "abort")),
            }
        )
    )
    world.upload(day(1, "weather", "a.csv"))
    world.upload(day(1))
    world.settle()
    [waiting] = world.jobs("both")
    assert (waiting.held, waiting.queued_in) == (("workflow:demo.flights.clean",), "group:demo.heavy")
    world.post("go")
    world.settle()
    assert reasons(world, "other") == ["ABORTED: at most 1 run of the workflow at a time, else abort: 1 of 1 in use"]

    world.disable("both")
    world.post("go")
    world.settle()
    assert states(world, "other") == ["STARTING"]
    assert world.limit_state("group:demo.heavy").waiters == 0


def test_w2_urgent_jobs_go_first_and_new_ones_never_overtake(world: World) -> None:
    schedules = {
        name: partitions(dataset=dataset, by=["day"], priority=priority, **at_most(1))
        for name, dataset, priority in (("low", "flights", 2), ("high", "weather", 8))
    }
    world.deploy(flights(schedules))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    order = [run.schedule.rpartition(".")[2] for run in world.runs("low")]
    assert order == ["low"]

    started = []
    for _ in range(3):
        world.finish()
        world.settle()
        live = [run.name for run in world.targets.emr.runs.values() if run.state == "SUBMITTED"]
        started += [name.split(".")[2] for name in live]

    assert started == ["high", "low"]
