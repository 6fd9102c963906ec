"""One pending job per schedule (C11), starts that fail (C12), and why nothing has run yet (C14)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.core.targets.answers import Never, NotNow
from chalicelib.flow import lookup
from tests.acceptance.words import (
    absent,
    all_of,
    concurrency,
    day,
    days,
    delay,
    doze,
    elapsed,
    event,
    kinds,
    on,
    partition,
    quiet,
    reasons,
    states,
    status,
    time,
    why,
    why_schedule,
    window,
)
from tests.support.answers import explain
from tests.support.clock import NOON
from tests.support.schedules import partitions
from tests.support.world import World, flights

UNLIMITED = {"used": None, "max": None, "held_by": None}  # of a constraint that is no limit


def test_c11_events_join_a_waiting_job_but_not_a_claimed_one(
    world: World,
) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1))}))
    for number in range(1, 5):
        world.upload(day(number))
        world.settle()
    assert len(world.jobs("daily")) == 1
    world.finish()
    world.settle()
    world.upload(day(5))
    world.settle()
    world.finish()
    world.settle()

    assert [days(world, run) for run in world.runs("daily")] == [["1"], ["2", "3", "4"], ["5"]]
    assert world.records("daily") == []


def test_c11_fires_that_join_a_waiting_one_are_recorded(world: World) -> None:
    world.deploy(flights({"tick": on(time("@every 1m"), "clean", concurrency(1))}))
    world.pass_by("4m")
    [waiting] = [job for job in world.jobs("tick") if job.state == "PENDING_LAUNCH"]
    assert reasons(world, "tick") == [f"COALESCED: joined job {waiting.job_id}, which was still waiting"] * 2

    world.finish()
    world.settle()
    assert [run.nominal_at for run in world.runs("tick")] == [NOON + MINUTE, NOON + 2 * MINUTE]


def test_c11_without_coalescing_each_fire_is_a_job_and_runs(world: World) -> None:
    world.deploy(flights({"tick": on(time("@every 1m"), "clean", concurrency(1), coalesce=False)}))
    world.pass_by("3m")
    assert len(world.jobs("tick")) >= 2
    world.pause("tick", "drain")
    for _ in range(4):
        world.finish()
        world.pass_by("1s")

    assert [run.nominal_at for run in world.runs("tick")] == [NOON + step * MINUTE for step in (1, 2, 3)]
    assert world.records("tick") == []


def test_c11_the_events_of_a_batch_are_one_job_each_and_all_run(world: World) -> None:
    """Several events of one fire (E2) find the limit reached. None of them joins the job that already waits."""
    batch = on(time("1 12 2 3 *"), "clean", concurrency(1), spread={"count": 4})
    world.deploy(flights({"batch": batch}))
    world.pass_by("2m")
    assert len({job.job_id for job in world.jobs("batch")}) == 3
    for _ in range(4):
        world.finish()
        world.settle()
    assert states(world, "batch") == ["SUCCEEDED"] * 4
    assert kinds(world, "batch") == []


def test_c11_without_coalescing_each_match_is_a_separate_job(world: World) -> None:
    world.deploy(flights({"daily": on(partition(count=2), "clean", concurrency(1), coalesce=False)}))
    for number in range(1, 8):
        world.upload(day(number))
        world.settle()
        world.clock.pass_by("1s")
    assert sorted(job.kind for job in world.jobs("daily")) == ["detached", "detached", "gathering"]
    for _ in range(3):
        world.finish()
        world.settle()

    assert [days(world, run) for run in world.runs("daily")] == [["1", "2"], ["3", "4"], ["5", "6"]]


def test_c11_without_coalescing_each_quiet_is_a_separate_job(world: World) -> None:
    """A match that time completes is detached for the next one, as a match that an event completes is."""
    rules = (window("12:30", "18:00"), concurrency(1))
    world.deploy(flights({"chunks": on(quiet(partition(), "5m"), "clean", *rules, coalesce=False)}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
        world.pass_by("6m")
    assert len(world.jobs("chunks")) == 2
    doze(world, "20m")
    world.upload(day(3))
    world.settle()
    world.pass_by("6m")
    for _ in range(2):
        world.finish()
        world.pass_by("1s")

    assert [days(world, run) for run in world.runs("chunks")] == [["1"], ["2"], ["3"]]


def test_c11_waiting_at_a_limit_loses_no_event_abort_drops_them(world: World) -> None:
    world.deploy(
        flights(
            {
                "waits": on(partition(), "clean", concurrency(1)),
                "aborts": on(partition(), "join", concurrency(1, "abort")),
            }
        )
    )
    for number in (1, 2, 3):
        world.upload(day(number))
        world.settle()
    world.finish()
    world.settle()
    assert [days(world, run) for run in world.runs("waits")] == [["1"], ["2", "3"]]
    assert [days(world, run) for run in world.runs("aborts")] == [["1"]]
    assert kinds(world, "aborts") == ["ABORTED", "ABORTED"]


def test_c12_a_refused_start_is_repeated_with_backoff_as_same(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.targets.emr.answers = [NotNow("too many requests")] * 3
    world.upload(day(1))
    world.settle()
    [run] = world.runs("daily")
    turn = "waits for a permit of the EMR start rate of this account: one start every 1s, burst 20"
    assert (run.state, run.reason.text) == ("STARTING", f"too many requests; {turn}")
    assert explain.why_run(run)["why"] == run.reason.text

    world.pass_by("30s")
    [run] = world.runs("daily")
    assert (run.calls, len(world.targets.emr.runs)) == (4, 1)
    assert len(set(world.targets.emr.calls)) == 1
    world.finish()
    assert states(world, "daily") == ["SUCCEEDED"]


def test_c12_a_start_that_cannot_succeed_fails_run_without_retry(world: World) -> None:
    fragile = {"target": {"type": "emr_serverless", "entry_point": "s3://code/a.py"}, "retries": {"attempts": 3}}
    limited = on(partition(), "fragile", concurrency(1))
    world.deploy(flights({"daily": limited, "alarm": on(status("fragile", "FAILED"), "join")}, fragile=fragile))
    world.targets.emr.answers = [Never("the role may not be assumed")]
    world.upload(day(1))
    world.settle()
    doze(world, "10m")

    [run] = world.runs("daily")
    assert (run.state, run.reason.text, run.calls) == ("FAILED", "the role may not be assumed", 1)
    assert len(world.runs("alarm")) == 1
    assert world.limit_state("workflow:demo.flights.fragile").active == 0


def test_c14_why_of_half_met_all_shows_what_came_and_is_missing(world: World) -> None:
    inputs = all_of(partition(count=2), status("clean"), event("go", pattern={"region": ["eu"]}))
    world.deploy(flights({"join": on(inputs, "join"), "clean": partitions(dataset="weather")}))
    answer = why_schedule(world, "join")
    lacks = "no partition has arrived and no upstream run has reached its status and no event has arrived yet"
    assert (answer["jobs"], answer["why"].partition("; trigger: 2 par")[0]) == ([], lacks)

    world.clock.pass_by("5m")
    world.upload(day(1))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.clock.pass_by("5m")
    world.finish()
    world.settle()

    answer = why(world, "join")
    assert answer["arrived"] == [
        "1 partition of demo.flights came at 2026-03-02T12:05:00.000Z",
        "demo.flights.clean reached COMPLETED at 2026-03-02T12:10:00.000Z",
    ]
    assert answer["missing"] == ["1 partition of demo.flights", "1 event go where region is 'eu'"]
    assert (answer["since"], answer["decision"]) == ("2026-03-02T12:05:00.000Z", "wait")
    timeout = "its timeout at 2026-03-03T12:05:00.000Z"
    assert answer["wakes"] == f"the next event that its trigger waits for, or {timeout}"
    assert why_schedule(world, "join")["why"] == answer["why"] == world.jobs("join")[0].reason.text


def test_c14_a_waiting_constraint_says_what_wakes_it_and_when(world: World) -> None:
    rules = (window("22:00", "06:00", zone="Europe/Paris"), delay("30m"), concurrency(2))
    world.deploy(flights({"daily": on(partition(), "clean", *rules)}))
    world.upload(day(1))
    world.settle()
    answer = why(world, "daily")
    assert answer["wakes"] == "its time at 2026-03-02T21:00:00.000Z"
    assert answer["constraints"] == [
        {
            "type": "time_window",
            "met": False,
            "why": "between 22:00 and 06:00 in Europe/Paris, else wait: not before 2026-03-02T21:00:00.000Z",
            "until": "2026-03-02T21:00:00.000Z",
            **UNLIMITED,
        },
        {
            "type": "delay",
            "met": False,
            "why": "30m after the job was created, else wait: not before 2026-03-02T12:30:00.000Z",
            "until": "2026-03-02T12:30:00.000Z",
            **UNLIMITED,
        },
        {
            "type": "concurrency",
            "met": True,
            "why": "at most 2 runs of the workflow at a time, else wait: 0 of 2 in use",
            "until": None,
            "used": 0,
            "max": 2,
            "held_by": [],
        },
    ]
    assert answer["why"] == "; ".join(rule["why"] for rule in answer["constraints"][:2])


def test_c14_why_of_schedule_says_when_its_timer_is_checked_next(world: World) -> None:
    spans = {
        "four": on(elapsed("4h")),
        "feed": on(absent(event("heartbeat"), within="90m")),
        "tick": on(time("@every 7m")),
    }
    world.deploy(flights(spans | {"twice": on(all_of(time("R2/PT20M"), partition()))}))
    doze(world, "30m")
    answer = {name: why_schedule(world, name)["next_fire"] for name in (*spans, "twice")}
    assert answer == {
        "four": "2026-03-02T16:00:00.000Z",
        "feed": "2026-03-02T13:30:00.000Z",
        "tick": "2026-03-02T12:35:00.000Z",
        "twice": "2026-03-02T12:40:00.000Z",
    }
    doze(world, "10m")
    assert why_schedule(world, "twice")["next_fire"] is None


def test_c14_why_of_run_says_what_fired_it_and_its_waiting_time(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", delay("90s"))}))
    world.upload(day(1))
    world.pass_by("2m")
    [run] = world.runs("daily")
    answer = explain.why_run(run)
    assert answer["fired_by"] == "trigger met: 1 partition of demo.flights came at 2026-03-02T12:00:00.000Z"
    assert (answer["waited_ms"], answer["why"]) == (90_000, "its start was requested and is not confirmed yet")


def test_c14_a_finished_job_is_found_by_its_record_or_its_run(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1, "abort"))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [run], [record] = world.runs("daily"), world.records("daily")
    for job_id, hint in (
        (run.run_id, "it has become a run"),
        (record.id, "it was aborted at 2026-03-02T12:00:00.000Z"),
    ):
        with pytest.raises(SluiceError, match="no job named") as refused:
            lookup.find_job(world.ports, job_id)
        assert hint in str(refused.value.hint)
