"""Orders of events around sizes, gaps, spans, repeats and updates; the numbers are those of
docs/internals/interleavings.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.targets.answers import NotNow
from tests.support.ledgers import Before, has_kind
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights, full


def _sized(count: str) -> dict[str, Any]:
    return {"workflow": "clean", "enabled": True, "trigger": {"type": "size", "dataset": "flights", "bytes": count}}


def _gap(**fields: Any) -> dict[str, Any]:
    return partitions(constraints=[{"type": "since_last_run", "at_least": "5m", **fields}])


def test_interleaving_08_object_reported_twice_counts_bytes_once(world: World) -> None:
    world.deploy(flights({"bulk": _sized("100")}))

    world.upload(day(1, name="a.csv"), size=60, etag="e-1")
    world.upload(day(1, name="a.csv"), size=60, etag="e-1")
    world.settle()
    assert world.runs("bulk") == []
    [job] = world.jobs("bulk")
    assert job.leaves["0"].amount == 60

    world.upload(day(1, name="b.csv"), size=40)
    world.settle()
    assert len(world.runs("bulk")) == 1


def test_interleaving_08_a_multipart_upload_is_one_whole_object(world: World) -> None:
    """S3 notifies of a multipart upload when it is complete; a second notification may have another event name."""
    world.deploy(flights({"bulk": _sized("100")}))
    for etag in ("abc-3", "abc-3"):
        world.upload(day(1, name="big.csv"), size=99, etag=etag)
    world.settle()
    assert world.runs("bulk") == []

    # Written again with other content: where overwrites do not count, this is no new data.
    world.upload(day(1, name="big.csv"), size=99, etag="def-3")
    world.settle()
    assert world.runs("bulk") == []


def test_interleaving_15_an_active_run_counts_a_failed_does_not(world: World) -> None:
    world.deploy(flights({"a": _gap()}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1m")

    world.upload(day(2))
    world.settle()
    assert len(world.runs("a")) == 1
    [record] = world.records("a")
    assert record.kind == "ABORTED"
    assert "5m since the last successful run started" in record.reason.text

    world.finish("FAILED", "broken")
    world.upload(day(3))
    world.settle()
    assert [run.state for run in world.runs("a")] == ["FAILED", "STARTING"]


def test_interleaving_15_a_gap_waiter_starts_when_the_run_failed(world: World) -> None:
    world.deploy(flights({"a": _gap(on_unmet="wait")}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1m")
    world.upload(day(2))
    world.settle()
    assert len(world.runs("a")) == 1

    world.finish("FAILED", "broken")
    world.settle()
    assert [run.state for run in world.runs("a")] == ["FAILED", "STARTING"]


def test_interleaving_16_an_elapsed_span_restarts_at_each_start(world: World) -> None:
    elapsed = {"workflow": "clean", "enabled": True, "trigger": {"type": "elapsed", "after": "4h"}}
    world.deploy(flights({"idle": elapsed, "other": partitions()}))
    enabled = world.clock.now()

    world.pass_by("4h")
    assert [run.claimed_at - enabled for run in world.runs("idle")] == [4 * HOUR]
    world.finish()

    world.pass_by("1h")
    world.upload(day(1))  # another user's data starts the workflow at five hours
    world.settle()
    world.finish()
    world.pass_by("3h59m")
    assert len(world.runs("idle")) == 1
    world.pass_by("1m")
    assert [run.claimed_at - enabled for run in world.runs("idle")] == [4 * HOUR, 9 * HOUR]


def test_interleaving_24_all_repeats_run_and_then_it_is_complete(world: World) -> None:
    world.deploy(flights({"beat": at("R4/PT3S", coalesce=False)}))
    start = world.clock.now()
    schedule_state = world.ports.rows.get(ScheduleState, full("beat"))
    assert schedule_state is not None
    assert schedule_state.mode == "completed", "all four are prepared at once, and used up"

    world.pass_by("20s")

    assert [run.nominal_at for run in world.runs("beat")] == [start + step * 3 * SECOND for step in range(1, 5)]
    assert len(world.targets.emr.runs) == 4
    world.pass_by("1h")
    assert len(world.runs("beat")) == 4


def test_interleaving_24_the_last_repeat_does_not_end_a_hold(world: World) -> None:
    world.deploy(flights({"beat": at("R2/PT3M", **at_most(1))}))
    world.pause("beat")
    world.pass_by("15m")
    assert world.runs("beat") == []
    assert _mode(world, "beat") == "hold"

    world.resume("beat")
    world.settle()
    assert len(world.runs("beat")) == 1
    assert _mode(world, "beat") == "completed"


def test_interleaving_24_a_resume_runs_the_job_that_waited(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    [gathering] = world.jobs("daily")
    world.pause("daily")
    world.upload(day(2))
    world.settle()
    world.pass_by("10m")
    assert world.runs("daily") == []

    world.hints.lose = True
    world.resume("daily")
    world.hints.lose = False
    world.pass_by("1m6s")

    [run] = world.runs("daily")
    assert run.run_id == gathering.job_id
    assert [event["partition"]["day"] for event in world.context(run)["events"]] == ["1", "2"]
    assert world.records("daily") == []


def test_interleaving_26_an_update_carries_past_an_old_check(world: World) -> None:
    world.deploy(flights({"daily": partitions(properties={"v": 1}, **at_most(1))}))
    inner = world.ports.ledger

    def put_update() -> None:
        """Between the check's read and its claim, an update is put and acknowledged."""
        world.ports = replace(world.ports, ledger=inner)
        world.put("daily", partitions(properties={"v": 2}, on_update="carry", **at_most(1)))

    world.upload(day(1))
    [job] = world.jobs("daily")
    world.ports = replace(world.ports, ledger=Before(inner, put_update, has_kind("DeleteJob")))
    world.settle()

    [run] = world.runs("daily")
    assert run.run_id == job.job_id
    assert run.request.properties == {"v": 2}
    assert world.context(run)["properties"] == {"v": 2}


def test_interleaving_26_refused_run_starts_with_new_properties(world: World) -> None:
    world.deploy(flights({"daily": partitions(properties={"v": 1})}))
    world.targets.emr.answers = [NotNow("throttled")]
    world.upload(day(1))
    world.settle()

    world.put("daily", partitions(properties={"v": 2}, on_update="carry"))
    world.pass_by("2m")

    [run] = world.runs("daily")
    assert run.target_id is not None
    assert world.context(run)["properties"] == {"v": 2}


def _mode(world: World, name: str) -> str:
    schedule_state = world.ports.rows.get(ScheduleState, full(name))
    assert schedule_state is not None
    return schedule_state.mode
