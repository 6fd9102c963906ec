"""The lines of history for special runs: bills that come late, deadlines, nodes of DAGs (H1, H3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chalicelib.core.history import lines
from chalicelib.core.instants import MINUTE, iso
from chalicelib.core.notices import deadlines
from chalicelib.core.rows.notice import DeadlineWatch
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.bills import LIST
from chalicelib.flow.system import dispatch
from infra.system_app import APP
from sluice import documents
from tests.acceptance.words import day, event, on
from tests.support import dags, rows
from tests.support.answers import views
from tests.support.clock import NOON
from tests.support.world import EMR, World, flights

TWICE = {"target": EMR, "retries": {"attempts": 2, "delay": "1m"}}


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def one_run(world: World, reckons_after: int = 0, **fields: Any) -> Run:
    """One run of EMR that has ended, and whose bill is available this much later."""
    world.targets.emr.reckons_after = reckons_after
    world.deploy(flights({"a": on(event("go"), "clean", **fields)}))
    world.post("go")
    world.settle()
    world.finish()
    return world.runs("a")[0]


def test_h1_costs_known_at_once_need_no_further_poll(world: World) -> None:
    run = one_run(world)
    assert (run.billed, run.wake_at) == ((25, 100, 0), None)
    world.pass_by("20m")
    assert world.runs("a") == [run]
    assert len(world.targets.emr.asked_about) == 1


@pytest.mark.parametrize(("known_after", "asked"), [(MINUTE, 2), (10 * MINUTE, 3), (60 * MINUTE, 3)])
def test_h1_costs_known_later_are_asked_for_twice_and_then_never(world: World, known_after: int, asked: int) -> None:
    run = one_run(world, known_after)
    assert (run.state, run.billed, run.wake_at) == ("SUCCEEDED", (), world.clock.now() + 2 * MINUTE)
    world.pass_by("90m")
    (later,) = world.runs("a")
    assert len(world.targets.emr.asked_about) == asked
    assert later.billed == (() if known_after == 60 * MINUTE else (25, 100, 0))
    assert (later.wake_at, later.state, later.ended_at, later.state_at) == (
        None, "SUCCEEDED", run.ended_at, run.state_at,
    )  # fmt: skip


def test_h1_a_repeated_hint_uses_up_no_costs_poll(world: World) -> None:
    run = one_run(world, 10 * MINUTE)
    ref = Ref("run", (run.run_id, "001"))
    for _ in range(5):
        dispatch.dispatch(world.ports, ref)
    world.clock.pass_by("2m")
    for _ in range(5):
        dispatch.dispatch(world.ports, ref)
    assert len(world.targets.emr.asked_about) == 2
    world.pass_by("20m")
    assert world.runs("a")[0].billed == (25, 100, 0)


def test_h3_the_lake_has_run_at_its_end_and_again_with_its_costs(world: World) -> None:
    run = one_run(world, MINUTE)
    assert lines.is_final(run)
    world.pass_by("5m")
    (later,) = world.runs("a")
    first, second = (lines.line_of(each, LIST) for each in (run, later))
    assert lines.is_final(later)
    assert second["rev"] > first["rev"]
    assert ("cost_usd" in first, second["vcpu_hours"]) == (False, 0.025)
    answer = ("rev", "vcpu_hours", "memory_gb_hours", "storage_gb_hours", "cost_usd")
    assert {name: value for name, value in second.items() if name not in answer} == {
        name: value for name, value in first.items() if name not in answer
    }


@pytest.mark.parametrize(
    ("runs_for", "missed"), [("30s", (False, False)), ("11m", (False, True))], ids=["in time", "too long"]
)
def test_h5_history_shows_which_deadline_a_run_has_missed(
    world: World, runs_for: str, missed: tuple[bool, bool]
) -> None:
    world.deploy(
        flights(
            {"a": on(event("go"), "clean")},
            clean={"target": EMR, "deadline": {"start_within": "5m", "end_within": "10m"}},
        )
    )
    world.post("go")
    world.settle()
    world.pass_by(runs_for)
    world.finish()
    (run,) = world.runs("a")
    line, view = lines.line_of(run, LIST), views.run_view(run)
    assert (line["missed_start"], line["missed_end"]) == missed
    assert (line["end_by"] - line["start_by"], view["end_by"]) == (5 * MINUTE, iso(line["end_by"]))


def test_h5_a_schedule_deadline_counts_from_the_first_attempt(world: World) -> None:
    own = {"deadline": {"start_within": "1m", "end_within": "4m"}}
    world.deploy(flights({"a": on(event("go"), "clean", **own)}, clean={**TWICE, "deadline": {"end_within": "9h"}}))
    world.post("go")
    world.settle()
    world.finish("FAILED", "no space left")
    world.pass_by("5m")
    world.finish()
    first, second = (lines.line_of(run, LIST) for run in world.runs("a"))
    assert (first["end_by"], first["start_by"]) == (second["end_by"], second["start_by"])
    # Deadlines are checked once per run, for all its attempts.
    assert (first["missed_start"], first.get("missed_end")) == (False, None)
    assert (second.get("missed_start"), second["missed_end"]) == (None, True)
    # The delay of a retry does not count as a wait of its job.
    assert (second["waited_ms"], second.get("waited_for")) == (0, None)


def test_h5_without_a_deadline_nothing_is_missed(world: World) -> None:
    line = lines.line_of(one_run(world), LIST)
    assert not {"start_by", "end_by", "missed_start", "missed_end"} & set(line)


def test_h3_a_history_line_names_the_dag_run_and_node(world: World) -> None:
    world.deploy(dags.app(dags.dag("a -> b")))
    world.upload(day(1))
    world.settle()
    for _ in range(2):
        world.finish()
        world.settle()
    (run,) = world.ports.runs.runs("workflow", "demo.flights.w_b", 10, None).items
    line = lines.line_of(run, LIST)
    assert (line["dag"], line["dag_round"], line["node"]) == ("demo.flights.daily", 1, "b")
    assert line["partition"] == {"year": "2013", "month": "01", "day": "1"}, "the key of the DAG is no partition key"
    begun = world.ports.runs.attempts(line["dag_run"])
    assert lines.line_of(begun[-1], LIST)["target"] == "dag"


def test_h3_late_repeat_after_day_was_finished_finishes_it_again(world: World) -> None:
    world.deploy(documents.load(str(APP), {"lake": "lake-bucket", "code": "s3://control/code/"}), "system", "history")
    part = lines.Part("history/day=2026-02-27/hour=05/x.json.gz", (), ("1",))

    def comes_late() -> None:
        for key in lines.late_days([part], world.clock.now()):
            world.upload(key)
        world.settle()

    comes_late()
    world.pass_by("2m")
    comes_late()
    world.pass_by("15m")
    world.finish()
    world.pass_by("1m")
    # Within the same hour as the first two, before any reader has read that hour.
    comes_late()
    world.pass_by("17m")
    world.finish()
    world.pass_by("1m")

    settled = world.runs("system.history.compact_late")
    assert [run.correlation for run in settled] == [{"day": "2026-02-27"}] * 2
    assert len(world.runs("system.history.report")) == 2, "each settled day is reported on"


@given(
    begun=st.none() | st.integers(-3, 3),
    ended=st.integers(-3, 3),
    state=st.sampled_from(["SUCCEEDED", "FAILED", "CANCELLED", "ABORTED"]),
    by=st.tuples(st.none() | st.integers(-2, 2), st.none() | st.integers(-2, 2)),
)
def test_h5_history_judges_a_run_as_its_deadline_watch_did(
    begun: int | None, ended: int, state: str, by: tuple[int | None, int | None]
) -> None:
    """The watch reads the run at both instants; history reads it after its end."""
    # A run that was active was requested to start before its end. A run that was never requested was withdrawn or
    # cancelled.
    assume(state in ("ABORTED", "CANCELLED") if begun is None else begun <= ended and state != "ABORTED")
    due = {"start_by": None if by[0] is None else NOON + by[0], "end_by": None if by[1] is None else NOON + by[1]}
    run = rows.run(
        state=state, ended_at=NOON + ended, start_requested_at=None if begun is None else NOON + begun, **due
    )
    watch = DeadlineWatch("r1", run.workflow, run.schedule, **due, wake_at=NOON)
    answer: set[str] = set()
    for now in sorted({at for at in due.values() if at is not None}):
        asked = run.start_requested_at is not None and run.start_requested_at <= now
        seen = replace(run, state="RUNNING" if asked else "STARTING", start_requested_at=None, ended_at=None)
        if run.ended_at is not None and run.ended_at <= now:
            seen = run
        elif asked:
            seen = replace(seen, start_requested_at=run.start_requested_at)
        judged = deadlines.judge(watch, None, (seen,), None, now)
        watch, answer = judged.deadline, answer | {what for what, _ in judged.missed}
    line = lines.line_of(run, LIST)
    assert {what for what in ("missed_start", "missed_end") if line.get(what)} == answer
