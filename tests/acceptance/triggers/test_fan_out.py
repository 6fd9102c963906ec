"""One partition starts the jobs of many shorter periods (T27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.core.jobs.dry_run import dry_run
from chalicelib.core.rows.event import AppliedEvent
from chalicelib.core.triggers.partition import GivenPartition
from chalicelib.core.writes import Create, Write
from chalicelib.flow import lookup, period_jobs
from chalicelib.flow.definitions import store
from chalicelib.flow.views import partitions
from tests.acceptance.words import all_of, any_of, doze, on, reasons, why_schedule
from tests.support.crash import redelivered, wrap
from tests.support.ledgers import LedgerBetween
from tests.support.world import World, flights, full

PARIS = "Europe/Paris"
WEEK = [f"2026-03-{day:02}" for day in range(2, 9)]  # 2026-W10
BEFORE = [f"2026-02-{day:02}" for day in range(23, 29)] + ["2026-03-01"]
AFTER = [f"2026-03-{day:02}" for day in range(9, 16)]


def weeks(of: Any = "period") -> dict[str, Any]:
    return {"type": "partition", "dataset": "models", "of": of}


def last(ending: str, periods: int = 1) -> dict[str, Any]:
    return weeks({"periods": periods, "ending": ending})


HALVES = {"type": "partition", "dataset": "halves", "of": "period"}


def per_day(trigger: dict[str, Any] | None = None, per: Any = "day", **fields: Any) -> dict[str, Any]:
    return on(trigger or weeks(), "clean", per=per, **{"zone": PARIS} | fields)


def app(schedule: dict[str, Any], **models: Any) -> dict[str, Any]:
    """An app with the weeks ``models``, the halves of days ``halves``, and the schedule ``s``."""
    week = {"each": "week", "format": "week=%G-W%V", "zone": PARIS}
    half = {"each": "12h", "format": "dt=%Y-%m-%d/hour=%H", "zone": PARIS}
    datasets = {
        "models": {"bucket": "lake", "prefix": "raw/models/", "keys": ["week"], "period": week} | models,
        "halves": {"bucket": "lake", "prefix": "raw/halves/", "keys": ["dt", "hour"], "period": half},
    }
    return flights({"s": schedule}) | {"datasets": datasets}


def upload(world: World, *folders: str, dataset: str = "models") -> None:
    for folder in folders:
        world.upload(f"raw/{dataset}/{folder}/part-0.parquet", size=5)
    world.settle()


def labels(world: World) -> list[str]:
    """The labels of the periods of the runs, in their order."""
    return sorted(next(iter((run.correlation or {}).values())) for run in world.runs("s"))


@pytest.mark.parametrize(
    ("trigger", "days"), [(weeks(), WEEK), (last("before"), AFTER), (last("after"), BEFORE)], ids=["of", "next", "last"]
)
def test_t27_a_week_starts_the_jobs_of_its_days(world: World, trigger: dict[str, Any], days: list[str]) -> None:
    world.deploy(app(per_day(trigger)))
    upload(world, "week=2026-W10")
    assert labels(world) == days
    for run in world.runs("s"):
        context = world.context(run)
        [event] = context["events"]
        assert event["partition"] == {"week": "2026-W10"}
        assert run.correlation == context["correlation"] == {"day": context["period"]["label"]}
        assert context["period"]["end"] - context["period"]["start"] == 24 * HOUR


def test_t27_a_week_that_comes_twice_starts_nothing(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, "week=2026-W10", "week=2026-W10")
    world.upload("raw/models/week=2026-W10/part-1.parquet", size=5)
    world.settle()
    assert labels(world) == WEEK and reasons(world, "s") == []


def test_t27_a_day_waits_for_its_week_and_its_halves(world: World) -> None:
    world.deploy(app(per_day(all_of(last("before"), HALVES))))
    upload(world, "dt=2026-03-10/hour=00", dataset="halves")
    assert (
        "waits for 1 of 1 week for 2026-03-10 Europe/Paris in demo.models: 2026-W10" in why_schedule(world, "s")["why"]
    )
    upload(world, "week=2026-W10")
    assert (labels(world), len(world.jobs("s"))) == ([], 7)
    upload(world, "dt=2026-03-10/hour=12", "dt=2026-03-11/hour=12", dataset="halves")
    assert labels(world) == ["2026-03-10"]
    assert len(world.context(world.runs("s")[0])["events"]) == 3
    assert len(world.jobs("s")) == 6


def test_t27_weeks_around_a_day(world: World) -> None:
    world.deploy(app(per_day(last("after", 3))))
    upload(world, "week=2026-W11", "week=2026-W09")
    assert (labels(world), len(world.jobs("s"))) == ([], 35)
    upload(world, "week=2026-W10")
    assert labels(world) == WEEK


def test_t27_the_day_after(world: World) -> None:
    halves = HALVES | {"of": {"periods": 3, "ending": "after"}}
    world.deploy(app(per_day(halves)))
    upload(world, "dt=2026-03-03/hour=00", "dt=2026-03-02/hour=12", "dt=2026-03-02/hour=00", dataset="halves")
    assert labels(world) == ["2026-03-02"]


def test_t27_the_halves_of_the_days_of_a_month(world: World) -> None:
    month = {"each": "month", "format": "week=%Y-%m", "zone": PARIS}
    world.deploy(app(per_day(per={"each": "12h"}), period=month))
    upload(world, "week=2026-03")
    found = sorted((job.correlation or {})["12h"] for job in (*world.jobs("s"), *world.runs("s")))
    assert (len(found), found[0], found[-1]) == (62, "2026-03-01T00", "2026-03-31T12")


@pytest.mark.parametrize("late", ["ignore", "again"])
def test_t27_a_week_that_is_written_again(world: World, late: str) -> None:
    world.deploy(app(per_day(late=late), ready={"done_flag": "_SUCCESS"}, rewritten="again"))
    world.upload("raw/models/week=2026-W10/_SUCCESS", etag="a")
    world.settle()
    doze(world, "5s")
    for _ in range(2):
        world.upload("raw/models/week=2026-W10/_SUCCESS", etag="b")
        world.settle()
    assert labels(world) == sorted(WEEK * (1 if late == "ignore" else 2))
    assert len(reasons(world, "s")) == (7 if late == "ignore" else 0)


def test_t27_a_week_starts_the_days_that_did_not_run(world: World) -> None:
    world.deploy(app(per_day(any_of(weeks(), HALVES))))
    upload(world, "dt=2026-03-04/hour=00", "dt=2026-03-04/hour=12", dataset="halves")
    assert labels(world) == ["2026-03-04"]
    upload(world, "week=2026-W10")
    assert labels(world) == WEEK
    [late] = reasons(world, "s")
    assert "is late: the job of 2026-03-04 has started" in late


@pytest.mark.parametrize("after", [1, 3])
def test_t27_each_invocation_goes_on_where_one_ended(world: World, after: int) -> None:
    """Each is killed after some jobs. The next one tries none of those again."""
    world.deploy(app(per_day()))
    points = wrap(world)
    points.armed, tries = True, list[str]()

    class Counted(LedgerBetween):
        def before(self, writes: Sequence[Write]) -> None:
            found = [write.row for write in writes if isinstance(write, Create)]
            if any(isinstance(row, AppliedEvent) for row in found):
                tries.append("applied")
                assert len(tries) <= 7
                points.die_after = points.count + 1 if len(tries) % after == 0 else None

    world.ports = world.with_ports(ledger=Counted(world.ports.ledger))
    redelivered(lambda: world.upload("raw/models/week=2026-W10/part-0.parquet", size=5))
    points.armed = False
    world.settle()
    assert (len(tries), labels(world)) == (7, WEEK)


def test_t27_a_dry_run_names_each_job(world: World) -> None:
    world.deploy(app(per_day(last("before"))))
    schedule = lookup.existing(world.ports, full("s"))[1]
    datasets = period_jobs.datasets_of(world.ports, schedule)
    given = GivenPartition(type="partition", dataset="models", partition={"week": "2026-W10"})
    steps, left = dry_run(full("s"), schedule, [given], world.clock.now(), datasets)
    assert ([step.fires for step in steps], left) == ([True] * 7, [])
    for step, label in zip(steps, AFTER, strict=True):
        assert f"1 of 1 week for {label} Europe/Paris in demo.models came" in step.why.text


def test_t27_the_page_of_a_partition_names_its_jobs(world: World) -> None:
    world.deploy(app(per_day(all_of(weeks(), HALVES))))
    upload(world, "week=2026-W10")
    dataset = period_jobs.datasets_of(world.ports, lookup.existing(world.ports, full("s"))[1])["demo.models"]
    found = partitions.one(world.ports, "demo.models", dataset, {"week": "2026-W10"})
    assert {job["job_id"] for job in found["waiting"]} == {job.job_id for job in world.jobs("s")}
    assert len(found["waiting"]) == 7


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (per_day(per={"each": "15m", "zone": PARIS}), {}, "whose names the clocks of Europe/Paris show once"),
    (
        per_day(per={"each": "15m", "zone": "UTC"}),
        {"period": {"each": "year", "format": "week=%Y"}},
        "at most 1,000 jobs for each partition of demo.models, got 'up to 35,136'",
    ),
    (per_day(last("period", 200)), {}, "at most 1,000 jobs for each partition of demo.models, got 'up to 1,400'"),
    (per_day(weeks({"from": "-6d"})), {}, "of: period or a number of periods"),
    (per_day(zone="Asia/Tokyo"), {}, "expected a dataset of days in Asia/Tokyo"),
]


@pytest.mark.parametrize(("schedule", "models", "why"), REFUSED, ids=[why[:30] for _, _, why in REFUSED])
def test_t27_what_is_refused(world: World, schedule: dict[str, Any], models: dict[str, Any], why: str) -> None:
    with pytest.raises((SluiceError, ValidationError)) as refused:
        world.deploy(app(schedule, **models))
    assert why in str(refused.value)


def test_t27_more_jobs_than_known_at_the_put(world: World) -> None:
    """The dataset has years later."""
    document = app(per_day(per={"each": "hour"}))
    world.deploy(document)
    year = {"each": "year", "format": "week=%Y", "zone": PARIS}
    store.put(world.ports, "dataset", "demo.models", document["datasets"]["models"] | {"period": year}, "tester")
    upload(world, "week=2026")
    assert (labels(world), world.jobs("s")) == ([], [])
    [reason] = reasons(world, "s")
    assert "belongs to more than 1,000 jobs and does not count" in reason
    plan = lookup.existing(world.ports, full("s"))[1]
    given = GivenPartition(type="partition", dataset="models", partition={"week": "2026"})
    [step], _ = dry_run(full("s"), plan, [given], world.clock.now(), period_jobs.datasets_of(world.ports, plan))
    assert "belongs to more than 1,000 jobs" in step.why.text and not step.fires


def test_t27_the_last_year_of_names(world: World) -> None:
    """No period is computed after it."""
    year = {"each": "year", "format": "week=%Y", "zone": PARIS}
    world.deploy(app(per_day(any_of(weeks(), last("before"), last("after")), per="quarter"), period=year))
    upload(world, "week=9998")
    assert labels(world) == [f"{year}-Q{quarter}" for year in (9997, 9998) for quarter in (1, 2, 3, 4)][:7]
