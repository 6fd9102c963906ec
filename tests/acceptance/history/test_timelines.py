"""The timeline of a run: its instants are in the order of its steps, and a retry keeps what fired its first attempt."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.history import lines
from chalicelib.core.instants import DAY, iso
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete as completion
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Replace
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.runs import complete
from tests.acceptance.words import day
from tests.support.answers import explain, views
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights, full

TWICE = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}


def begun(span: str = "728ms") -> World:
    """A run whose start is requested within a second, as it is in truth."""
    world = World()
    world.deploy(flights({"a": partitions(workflow="twice", by=["day"])}, twice=TWICE))
    world.pass_by(span)
    world.upload(day(1))
    world.settle()
    return world


def instants(run: Run) -> list[str]:
    view = views.run_view(run)
    shown = (view["claimed_at"], view["start_requested_at"], view["started_at"], view["ended_at"])
    return [at for at in shown if at is not None]


def hears(world: World, state: str, back: int, **more: int) -> Run:
    """EMR tells of a state by a clock that is ``back`` ms behind."""
    [*_, run] = world.runs("a")
    at = world.clock.now() - back
    complete.advance_run(world.ports, run.run_id, run.attempt, RunUpdate(state, at, "broken", **more))
    return world.runs("a")[-1]


def test_a_start_in_whole_seconds_is_not_before_its_request() -> None:
    world = begun()
    run = hears(world, "RUNNING", back=728)
    assert run.start_requested_at is not None and run.started_at == run.start_requested_at
    world.pass_by("300ms")
    assert instants(hears(world, "SUCCEEDED", back=500)) == sorted(instants(world.runs("a")[-1]))


def test_an_end_that_reports_an_earlier_start_is_in_order() -> None:
    world = begun()
    start = world.clock.now() - 900
    run = hears(world, "FAILED", back=600, started_at=start)
    assert len(instants(run)) == 4
    assert instants(run) == sorted(instants(run))


def test_a_start_after_its_request_keeps_the_clock_of_the_target() -> None:
    world = begun()
    world.pass_by("10s")
    run = hears(world, "RUNNING", back=4_000)
    assert run.started_at == world.clock.now() - 4_000
    assert completion.advance(run, RunUpdate("RUNNING", world.clock.now()), world.clock.now(), None) is None


def test_a_retry_keeps_what_fired_its_first_attempt() -> None:
    world = begun()
    world.finish("FAILED", "the file is empty")
    world.settle()
    [retry] = world.jobs("a")
    answer = explain.why_job(world.ports, retry)
    [first] = world.runs("a")
    assert first.fired_by.text.startswith("trigger met: 1 partition of demo.flights")
    assert answer["fired_by"] == first.fired_by.text
    assert "attempt 1 of 2 failed: the file is empty" in retry.reason.text
    due = iso(retry.due_at or 0)
    assert answer["why"] == f"attempt 1 of 2 failed: the file is empty; attempt 2: due at {due}"
    assert explain.why_schedule(world.ports, full("a"))["why"] == answer["why"]

    world.pass_by("31s")
    first, second = world.runs("a")
    assert (second.attempt, second.state, second.fired_by.text) == (2, "STARTING", first.fired_by.text)
    assert (first.state, first.reason.text) == ("RETRYING", "the file is empty")
    assert views.events_view(world.ports, second) == views.events_view(world.ports, first)
    assert explain.why_run(second)["fired_by"] == first.fired_by.text


def test_why_schedule_counts_a_start_from_the_claim() -> None:
    world = begun()
    [run] = world.runs("a")
    assert run.state == "STARTING" and run.state_at is not None
    changed = replace(run, state_at=run.claimed_at + 60_000, rev=run.rev + 1)
    assert world.ports.ledger.commit([Replace(changed)]) is None
    why = explain.why_schedule(world.ports, full("a"))["why"]
    assert f"run {run.run_id} is STARTING since {iso(run.claimed_at)}" in str(why)


def test_why_schedule_names_the_active_run_of_what_arrived() -> None:
    world = begun()
    hears(world, "RUNNING", back=0)
    [run] = world.runs("a")
    since = iso(run.state_at or 0)
    assert explain.why_schedule(world.ports, full("a"))["why"] == (
        f"{run.fired_by.text}; run {run.run_id} is RUNNING since {since}; nothing has arrived since"
    )
    world.upload(day(2))
    world.settle()
    [first, second] = sorted(world.runs("a"), key=lambda each: each.run_id != run.run_id)
    answer = explain.why_schedule(world.ports, full("a"))["why"]
    assert f"run {second.run_id} and 1 more is STARTING" in answer or f"run {first.run_id} and 1 more" in answer
    for _ in range(2):
        world.finish()
        world.settle()
    assert explain.why_schedule(world.ports, full("a"))["why"].startswith(
        "no partition has arrived since the last run; trigger: "
    )


def test_a_run_of_a_reprocessing_waits_from_its_request() -> None:
    """Its partition arrived a day earlier."""
    world = begun()
    world.finish()
    world.settle()
    world.pass_by("1d")
    asked = Reprocess.model_validate({"dataset": "flights", "partition": {"year": "2013", "month": "01", "day": "1"}})
    reprocess.begin(world.ports, "demo", asked, "tester", "r1")
    world.pass_by("2s")
    first, again = sorted(world.runs("a"), key=lambda run: run.claimed_at)
    assert again.backfill is not None and again.claimed_at - first.claimed_at >= DAY
    assert lines.waited(again) < 3_000
    assert again.waited_for.text == ""


def test_a_retry_of_a_retry_still_names_the_first_cause() -> None:
    world = World()
    three = {"target": EMR, "retries": {"attempts": 3, "delay": "30s"}}
    world.deploy(flights({"a": partitions(workflow="thrice", by=["day"])}, thrice=three))
    world.upload(day(1))
    world.settle()
    for _ in range(2):
        world.finish("FAILED", "broken")
        world.pass_by("31s")
    assert [run.attempt for run in world.runs("a")] == [1, 2, 3]
    assert len({run.fired_by.text for run in world.runs("a")}) == 1
