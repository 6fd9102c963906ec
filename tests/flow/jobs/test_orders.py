"""Orders of events that once gave wrong results, as they happened."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.jobs import queue
from chalicelib.flow.jobs.check import check_job
from tests.support.ledgers import Before
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights, full

LIMIT = "workflow:demo.flights.clean"
CHUNK = {"type": "event", "event": "chunk"}


def test_a_server_with_a_stale_read_keeps_a_detached_job_queued(world: World) -> None:
    world.deploy(flights({"one": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    [seen] = world.ports.jobs.head_of(LIMIT, 20)
    world.pause("one", "drain")

    queue._serve_one(world.ports, seen)

    assert (world.limit_state(LIMIT).waiters, len(world.ports.jobs.head_of(LIMIT, 20))) == (1, 1)
    world.finish()
    world.settle()
    assert len(world.runs("one")) == 2


def test_l4_a_resume_overrides_a_server_that_still_read_the_hold(world: World) -> None:
    world.deploy(flights({"one": partitions(timeout="never", **at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    [job] = world.jobs("one")
    world.hints.lose = True
    world.pause("one", "hold")
    world.hints.lose = False
    meanwhile = world.with_ports(ledger=Before(world.ports.ledger, lambda: world.resume("one")))

    check_job(meanwhile, (job.schedule, job.generation, job.sort_key), serving=LIMIT)

    world.finish()
    world.pass_by("5m")
    assert len(world.runs("one")) == 2


def test_c7_a_success_overrides_a_server_that_had_not_read_it(world: World) -> None:
    fresh = {"type": "fresh", "workflows": ["join"], "within": "1d", "on_unmet": "wait"}
    limit = {"type": "concurrency", "max": 1, "on_unmet": "wait"}
    busy = partitions(dataset="weather")
    world.deploy(flights({"up": at("@every 30m", "join"), "busy": busy, "a": partitions(constraints=[limit])}))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.upload(day(1))
    world.settle()
    [job] = world.jobs("a")
    assert job.queued_in == LIMIT
    world.put("a", partitions(constraints=[limit, fresh], on_update="carry"))

    def succeed() -> None:
        world.run_now("up")
        world.settle()
        [run] = [run for run in world.targets.emr.runs.values() if ".up." in run.name]
        world.emr_says(run.id, "SUCCESS")

    meanwhile = world.with_ports(ledger=Before(world.ports.ledger, succeed))
    check_job(meanwhile, (job.schedule, job.generation, job.sort_key), serving=LIMIT)
    world.finish()
    world.pass_by("5m")
    assert len(world.runs("a")) == 1


def test_t14_a_match_completed_by_quiet_survives_a_later_event(world: World) -> None:
    quiet = {"type": "quiet", "of": CHUNK, "after": "5m"}
    both = {"type": "all", "triggers": [quiet, {"type": "event", "event": "b"}], "within": "10m"}
    world.deploy(flights({"a": {"workflow": "clean", "enabled": True, "trigger": both}}))
    world.post("b")
    world.clock.pass_by("299s")
    world.post("chunk")
    world.clock.pass_by("301s")
    world.hints.sent.clear()

    world.post("b")
    world.settle()

    assert (len(world.runs("a")), world.records("a")) == (1, [])


def test_c5_a_job_waiting_for_its_rate_takes_no_slot_from_others(world: World) -> None:
    once = {"constraints": [{"type": "rate", "max": 1, "per": "day"}]}
    other = partitions(dataset="weather", **at_most(1, "abort"))
    world.deploy(flights({"daily": partitions(by=["day"], **once), "other": other}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.upload(day(2))
    world.settle()
    assert [job.state for job in world.jobs("daily")] == ["PENDING_LAUNCH"]

    world.upload(day(1, "weather", "a.csv"))
    world.settle()

    assert len(world.runs("other")) == 1


def test_l2_a_completed_schedule_can_be_put_disabled(world: World) -> None:
    world.deploy(flights({"r": at("R3/PT20S")}))
    schedule_state = world.ports.rows.get(ScheduleState, full("r"))
    assert schedule_state is not None and schedule_state.mode == "completed"
    world.put("r", at("R3/PT20S") | {"enabled": False})
    world.pass_by("2m")
    assert world.runs("r") == []


def test_c1_a_retry_cancels_no_run_after_its_first_attempt(world: World) -> None:
    emr = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    workflow = {"target": emr, "retries": {"attempts": 2, "delay": "1m"}}
    newest = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "cancel_other"}]}
    world.deploy(flights({"a": partitions(by=["day"], **newest)}, clean=workflow))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    world.upload(day(2))
    world.settle()

    world.pass_by("3m")

    assert [run.cancel for run in world.runs("a")] == [False, False]
    world.finish()
    world.settle()
    assert len(world.runs("a")) == 3


def test_t9_late_duplicate_of_overwrite_counts_in_no_generation(world: World) -> None:
    app = flights({"a": {"workflow": "clean", "enabled": True, "trigger": size("1 KB")}})
    app["datasets"]["weather"]["count_overwrites"] = True
    world.deploy(app)
    key = day(1, "weather", "a.csv")
    world.upload(key, size=400, etag="one")
    world.upload(key, size=500, etag="two")
    world.put("a", {"workflow": "clean", "trigger": size("2 KB")})
    world.upload(key, size=400, etag="one")
    world.upload(key, size=500, etag="two")
    assert world.jobs("a") == []


def size(amount: str) -> dict[str, Any]:
    return {"type": "size", "dataset": "weather", "bytes": amount}


def test_l3_a_drain_record_keeps_its_reason_through_a_disable(world: World) -> None:
    world.deploy(flights({"a": partitions(5)}))
    world.upload(day(1))
    world.pause("a", "drain")
    world.disable("a")
    assert [record.reason.text for record in world.records("a")] == [
        "the schedule was paused to drain before its trigger was met"
    ]


def test_l4_a_stopped_timeout_goes_on_when_the_hold_is_disabled(world: World) -> None:
    fresh = {"type": "fresh", "workflows": ["join"], "within": "1h", "on_unmet": "wait"}
    world.deploy(flights({"one": partitions(constraints=[fresh], timeout={"after": "1h"})}))
    world.run_now("one")
    world.settle()
    world.pause("one", "hold", stop_timeouts=True)
    world.settle()
    world.pass_by("30m")

    world.disable("one")
    world.settle()

    world.pass_by("59m")
    assert world.records("one") == []
    world.pass_by("2m")
    [record] = world.records("one")
    assert record.kind == "ABORTED" and "timeout of 1h" in record.reason.text
