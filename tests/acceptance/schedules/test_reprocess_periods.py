"""A re-processing leads from a partition to the periods that contain it, once each (L21, L22, T25)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.backfills import reprocess, reprocess_view
from tests.acceptance.schedules.test_reprocess import requested, seen, work_off
from tests.acceptance.triggers import test_fan_out as fan_out
from tests.acceptance.triggers.test_roll_ups import app, days_of, hours_of, per_day, upload, window
from tests.acceptance.words import doze, on, partition, reasons
from tests.support.world import EMR, World

HOUR = {"dataset": "clicks", "partition": {"dt": "2026-03-01", "hour": "5"}}


def plan(world: World, **asked: Any) -> dict[str, list[str]]:
    """The labels of the periods of each schedule of a plan."""
    found = reprocess.preview(world.ports, "demo", requested(**asked))
    return {step.schedule.removeprefix("demo.flights."): list(step.entries) for step in found.steps}


def left_out(world: World, **asked: Any) -> dict[str, str]:
    view = reprocess_view.plan_view("demo", reprocess.preview(world.ports, "demo", requested(**asked)))
    return {each["schedule"].removeprefix("demo.flights."): each["why"] for each in view["not_followed"]}


def again(world: World, *names: str) -> list[tuple[str, str, int]]:
    """Of each run of the re-processing: its schedule, its label, and the number of its partitions, as they ended."""
    runs = [(name, run) for name in names for run in world.runs(name) if run.backfill]
    ordered = sorted(runs, key=lambda pair: (pair[1].claimed_at, pair[1].created_at))
    return [
        (name, "/".join((run.correlation or {}).values()), len(world.context(run)["events"])) for name, run in ordered
    ]


def begin(world: World, **asked: Any) -> str:
    begun = reprocess.begin(world.ports, "demo", requested(**asked), "tester", "r1").id
    work_off(world)
    return begun


def test_l21_an_hour_runs_its_day_and_its_month_again(world: World) -> None:
    """A month of two days is incomplete, so it is left out; each day runs once for two of its hours."""
    month = per_day() | {"per": "month"}
    world.deploy(app({"s": per_day(), "month": month, "each": on(partition("clicks"), "clean", by=["dt", "hour"])}))
    upload(world, *hours_of("2026-02-28"), *hours_of("2026-03-01"))
    work_off(world)
    asked = {"dataset": "clicks", "from": {"dt": "2026-02-28", "hour": "22"}, "to": {"dt": "2026-03-01", "hour": "01"}}
    assert plan(world, **asked)["s"] == ["2026-02-28", "2026-03-01"]
    assert len(plan(world, **asked)["each"]) == 4
    why = left_out(world, **asked)
    assert list(why) == ["month"]
    assert why["month"].startswith(
        "does not run 2026-02: lacks 648 of 672 hours of 2026-02 Europe/Paris in demo.clicks"
    )
    assert why["month"].endswith("; 1 more period cannot run either")
    begun = begin(world, **asked)
    assert again(world, "s") == [("s", "2026-02-28", 24), ("s", "2026-03-01", 24)]
    assert seen(world, begun)["state"] == "DONE"


def test_l21_a_day_runs_each_of_its_windows_again(world: World) -> None:
    world.deploy(app({"s": per_day(window(**{"from": "-6d", "to": "period"}))}))
    upload(world, *days_of("2026-02-16", 12), dataset="sales")
    work_off(world)
    labels = [f"2026-02-{day}" for day in range(22, 28)]
    assert fan_out.labels(world) == labels
    asked: dict[str, Any] = {"dataset": "sales", "partition": {"day": "2026-02-24"}}
    assert plan(world, **asked) == {"s": labels[2:]}
    assert "does not run 2026-02-28: lacks 1 of 7 days" in left_out(world, **asked)["s"]
    both = {"dataset": "sales", "from": {"day": "2026-02-20"}, "to": {"day": "2026-02-21"}}
    assert plan(world, **both) == {"s": labels}, "the windows of both days, once each"
    begin(world, **asked)
    assert again(world, "s") == [("s", label, 7) for label in labels[2:]]


def test_l21_a_week_runs_the_days_of_the_next_one_again(world: World) -> None:
    world.deploy(fan_out.app(fan_out.per_day(fan_out.last("before"))))
    fan_out.upload(world, "week=2026-W09")
    work_off(world)
    begin(world, dataset="models", partition={"week": "2026-W9"})
    assert again(world, "s") == [("s", f"2026-03-0{day}", 1) for day in range(2, 9)]


def deploy(world: World, **workflows: Any) -> None:
    """`s` makes the days `sales` of hours, `week` needs seven of them, and `told` follows a week by its status."""
    document = app(
        {
            "s": per_day(),
            "week": per_day(window(periods=7, ending="period")) | {"per": "week", "workflow": "join"},
            "told": {"workflow": "report", "by": ["week"], "enabled": True,
                     "trigger": {"type": "program_status", "workflow": "join", "statuses": ["COMPLETED"]}},
        }
    )  # fmt: skip
    document["workflows"] |= {"report": {"target": EMR}} | workflows
    world.deploy(document)


@pytest.mark.parametrize("register", ["never", "on_success"])
def test_l22_periods_are_followed_through_datasets(world: World, register: str) -> None:
    made: Any = [{"dataset": "sales", "register": "on_success"}] if register == "on_success" else ["sales"]
    deploy(world, clean={"target": EMR, "reads": ["clicks"], "produces": made})
    for day in days_of("2026-02-16", 7):
        upload(world, *hours_of(day.removeprefix("day=")))
        work_off(world)
        upload(world, *([day] if register == "never" else []), dataset="sales")
        work_off(world)
    assert [len(world.runs(name)) for name in ("s", "week", "told")] == [7, 1, 1]
    begun = begin(world, dataset="clicks", partition={"dt": "2026-02-18", "hour": "07"})
    week = [("s", "2026-02-18", 24), ("week", "2026-W08", 7), ("told", "2026-W08", 1)]
    assert again(world, "s", "week", "told") == week
    assert seen(world, begun)["state"] == "DONE"
    assert [len(world.runs(name)) for name in ("s", "week", "told")] == [8, 2, 2]
    run = world.runs("told")[-1]
    assert run.event is not None and run.event.run_id == world.runs("week")[-1].run_id


def test_l22_a_week_that_the_plan_completes_runs(world: World) -> None:
    """The seven days are registered by the runs of the plan, and not before."""
    clean = {"target": EMR, "reads": ["clicks"], "produces": [{"dataset": "sales", "register": "on_success"}]}
    world.deploy(app({}))
    for day in days_of("2026-02-16", 7):
        upload(world, *hours_of(day.removeprefix("day=")))
    deploy(world, clean=clean)
    asked = {"dataset": "clicks", "from": {"dt": "2026-02-16"}, "to": {"dt": "2026-02-22"}}
    assert plan(world, **asked)["week"] == ["2026-W08"]
    part = {"dataset": "clicks", "from": {"dt": "2026-02-16"}, "to": {"dt": "2026-02-21"}}
    assert "week" not in plan(world, **part)
    assert "does not run 2026-W08: lacks 1 of 7 days" in left_out(world, **part)["week"]
    begin(world, **asked)
    assert again(world, "week") == [("week", "2026-W08", 7)]


def test_l21_an_hour_of_which_no_period_can_run(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    upload(world, *hours_of("2026-03-01")[:6])
    with pytest.raises(SluiceError) as refused:
        plan(world, **HOUR)
    assert "demo.flights.s does not run 2026-03-01: lacks 18 of 24 hours" in str(refused.value.hint)


def test_l21_a_run_of_a_day_runs_again_with_its_week(world: World) -> None:
    deploy(world, clean={"target": EMR, "reads": ["clicks"], "produces": ["sales"]})
    for day in days_of("2026-02-16", 7):
        upload(world, *hours_of(day.removeprefix("day=")))
        upload(world, day, dataset="sales")
        work_off(world)
    run = next(run for run in world.runs("s") if run.correlation == {"day": "2026-02-18"})
    begin(world, run=run.run_id)
    assert again(world, "s", "week") == [("s", "2026-02-18", 24), ("week", "2026-W08", 7)]


def test_l21_a_run_of_a_day_beside_the_own_run(world: World) -> None:
    """A late hour runs the day by its trigger. The former run does not begin again until that run has ended."""
    world.deploy(app({"s": per_day(late="again", incomplete={"after": "1h"})}))
    *early, late = hours_of("2026-03-01")
    upload(world, *early)
    doze(world, "12h")
    work_off(world)
    [former] = world.runs("s")
    upload(world, late)
    begun = reprocess.begin(world.ports, "demo", requested(run=former.run_id), "tester", "r1").id
    world.settle()
    [own] = [run for run in world.runs("s") if run.run_id != former.run_id]
    assert "of 2026-03-01 is under way" in reasons(world, "s")[-1]
    assert (own.backfill, seen(world, begun)["state"]) == (None, "FAILED")
    work_off(world)
    reprocess.begin(world.ports, "demo", requested(run=former.run_id), "tester", "r2")
    work_off(world)
    assert again(world, "s") == [("s", "2026-03-01", 23)]
