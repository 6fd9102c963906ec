"""A DAG with one run for each period: it waits for the partitions as a schedule of one workflow does (T25 to T28)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, parse_instant
from chalicelib.core.jobs.dry_run import dry_run
from chalicelib.core.rows.event import Partition
from chalicelib.core.triggers.partition import GivenPartition
from chalicelib.flow import lookup, period_jobs
from chalicelib.flow.backfills import periods as backfill_periods
from chalicelib.flow.schedules import actions
from chalicelib.flow.views import partitions, periods
from tests.acceptance.triggers.test_roll_ups import DAYS, HOURS, PARIS, hours_of, period, upload
from tests.acceptance.words import all_of, any_of, at_least, doze, doze_until, reasons, status, why, why_schedule
from tests.support import dags
from tests.support.answers import read
from tests.support.backfills import begin, counts, preview, stop
from tests.support.dags import dag, ends, rerun, states, views
from tests.support.world import EMR, World, full

START = "daily~"
WEEKS = {"each": "week", "format": "week=%G-W%V", "zone": PARIS}
END = parse_instant("2026-03-02T23:00:00Z")  # of 2 March in Paris


def per_day(trigger: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A DAG of two nodes, with a run for each day."""
    return dag("a -> b", **{"trigger": trigger or period(), "by": [], "per": "day", "zone": PARIS} | fields)


def app(document: dict[str, Any], schedules: dict[str, Any] | None = None, **clicks: Any) -> dict[str, Any]:
    """An app with the DAG ``daily``, the hours ``clicks``, the days ``sales`` and the weeks ``models``."""
    datasets = {
        "clicks": {"bucket": "lake", "prefix": "raw/clicks/", "keys": ["dt", "hour"], "period": HOURS} | clicks,
        "sales": {"bucket": "lake", "prefix": "raw/sales/", "keys": ["day"], "period": DAYS},
        "models": {"bucket": "lake", "prefix": "raw/models/", "keys": ["week"], "period": WEEKS},
    }
    return dags.app(document, schedules) | {"datasets": datasets}


def contexts(world: World, node: str) -> list[dict[str, Any]]:
    """The contexts of the runs of a node, in the order of their start."""
    runs = [run.request for run in world.targets.emr.runs.values()]
    return [context for context in runs if context["schedule"].endswith(f"~{node}")]


def begun(world: World) -> list[dict[str, str]]:
    """The correlation of each run of the DAG."""
    return sorted((dict(run.correlation or {}) for run in world.runs(START)), key=str)


# -- one run for each day ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("day", "count"), [("2026-03-29", 23), ("2026-03-02", 24)])
def test_t25_a_dag_runs_when_its_day_is_complete(world: World, day: str, count: int) -> None:
    world.deploy(app(per_day()))
    first, *others = hours_of(day)
    upload(world, *reversed(others))
    assert views(world) == []
    upload(world, first)
    ends(world, "a")
    ends(world, "b")
    [view] = views(world)
    assert (view["state"], view["partition"]) == ("SUCCEEDED", {"day": day})
    [start] = world.runs(START)
    assert len(world.context(start)["events"]) == count
    of_start = world.context(start)["period"]
    assert (of_start["label"], (of_start["end"] - of_start["start"]) // HOUR) == (day, count)
    assert [context["period"] for node in "ab" for context in contexts(world, node)] == [of_start] * 2


def test_t25_why_of_a_dag_names_the_missing_hours(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, *(folder for folder in hours_of("2026-03-29") if folder[-2:] not in ("05", "17")))
    found = why(world, START)
    assert "waits for 2 of 23 hours of 2026-03-29 Europe/Paris in demo.clicks: 05 and 17" in found["why"]
    assert found["tree"]["lacks"] == [{"dt": "2026-03-29", "hour": hour} for hour in ("05", "17")]


def test_t25_days_of_a_dag_gather_side_by_side(world: World) -> None:
    world.deploy(app(per_day()))
    for pair in zip(hours_of("2026-03-02"), hours_of("2026-03-03"), strict=True):
        upload(world, *pair)
    assert begun(world) == [{"day": "2026-03-02"}, {"day": "2026-03-03"}]
    assert {context["period"]["label"] for context in contexts(world, "a")} == {"2026-03-02", "2026-03-03"}


@pytest.mark.parametrize(
    ("trigger", "hours", "found"),
    [
        (all_of(period(), period("sales")), 24, ["demo.clicks", "demo.sales"]),
        (any_of(period(), period("sales")), 0, ["demo.sales"]),
        (at_least(2, period(), period("sales"), period("models")), 24, ["demo.clicks", "demo.sales"]),
        (all_of(period("sales"), any_of(period(), period("models"))), 24, ["demo.clicks", "demo.sales"]),
    ],
    ids=["all", "any", "at_least", "nested"],
)
def test_t25_leaves_of_a_dag_combine(world: World, trigger: dict[str, Any], hours: int, found: list[str]) -> None:
    world.deploy(app(per_day(trigger)))
    upload(world, "day=2026-03-02", dataset="sales")
    assert len(world.runs(START)) == (not hours)
    upload(world, *hours_of("2026-03-02")[:hours])
    [start] = world.runs(START)
    assert sorted({event["dataset"] for event in world.context(start)["events"]}) == found


def test_t25_every_listed_value_of_the_day_of_a_dag(world: World) -> None:
    listed = {"keys": ["region", "day"], "period": DAYS, "values": {"region": ["us", "eu", "apac"]}}
    world.deploy(app(per_day(), **listed))
    upload(world, "region=us/day=2026-03-02")
    assert "2 of 3 partitions of 2026-03-02 Europe/Paris in demo.clicks: eu and apac" in why(world, START)["why"]
    upload(world, "region=apac/day=2026-03-02", "region=eu/day=2026-03-02")
    assert begun(world) == [{"day": "2026-03-02"}]


def test_t25_a_dag_has_a_run_for_each_region_of_a_day(world: World) -> None:
    world.deploy(app(per_day(by=["region"]), keys=["region", "day"], period=DAYS))
    upload(world, "region=us/day=2026-03-02", "region=eu/day=2026-03-02")
    assert begun(world) == [{"day": "2026-03-02", "region": region} for region in ("eu", "us")]
    assert [context["period"]["label"] for context in contexts(world, "a")] == ["2026-03-02"] * 2


def test_t25_another_graph_keeps_what_the_day_has(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02")[:-1])
    world.deploy(app(dag("a -> c", trigger=period(), by=[], per="day", zone=PARIS)))
    assert [job.leaves["0"].count for job in world.jobs(START)] == [23]
    upload(world, hours_of("2026-03-02")[-1])
    ends(world, "a")
    assert states(world) == [{"a": "SUCCEEDED", "c": "STARTING"}]


def test_t25_a_dag_of_a_day_that_ran_is_late_after_an_update(world: World) -> None:
    either = any_of(period(), period("sales"))
    world.deploy(app(per_day(either)))
    upload(world, "day=2026-03-02", dataset="sales")
    world.deploy(app(dag("a -> c", trigger=either, by=[], per="day", zone=PARIS)))
    upload(world, "dt=2026-03-02/hour=05")
    assert len(world.runs(START)) == 1
    assert "is late: the job of 2026-03-02 has started" in reasons(world, START)[-1]


def test_t25_a_node_that_runs_again_has_its_day(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02"))
    ends(world, "a")
    ends(world, "b", "FAILED")
    rerun(world, "from", "b")
    world.settle()
    assert [context["period"]["label"] for context in contexts(world, "b")] == ["2026-03-02"] * 2


def test_t25_a_dag_of_a_day_runs_now_with_what_there_is(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02")[:3])
    actions.run_now(world.ports, full(START), {}, "r1", None, {"day": "2026-3-2"})
    world.settle()
    [start] = world.runs(START)
    assert [event["kind"] for event in world.context(start)["events"]] == ["run_now", *["partition"] * 3]
    assert [context["period"]["label"] for context in contexts(world, "a")] == ["2026-03-02"]


def test_t25_a_dry_run_of_a_dag_of_a_day(world: World) -> None:
    world.deploy(app(per_day()))
    schedule = lookup.existing(world.ports, full(START))[1]
    values = [dict(part.split("=") for part in folder.split("/")) for folder in hours_of("2026-03-29")]
    given = [GivenPartition(type="partition", dataset="clicks", partition=each) for each in values]
    steps, left = dry_run(full(START), schedule, given, 0, period_jobs.datasets_of(world.ports, schedule))
    assert [step.fires for step in steps] == [False] * 22 + [True]
    assert "waits for 22 of 23 hours of 2026-03-29" in steps[0].why.text and left == []


def test_t25_the_page_of_a_partition_names_the_job_of_a_dag(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, "dt=2026-03-02/hour=05")
    dataset = period_jobs.datasets_of(world.ports, lookup.existing(world.ports, full(START))[1])["demo.clicks"]
    found = partitions.one(world.ports, "demo.clicks", dataset, {"dt": "2026-03-02", "hour": "06"})
    assert [job["job_id"] for job in found["waiting"]] == [job.job_id for job in world.jobs(START)]


def test_t25_what_follows_a_node_has_its_day(world: World) -> None:
    """The status of a node carries the day, and so does the partition that it registers."""
    after = {"workflow": "join", "enabled": True, "by": ["day"], "trigger": status("w_b")}
    document = app(per_day(), {"after": after})
    document["workflows"]["w_a"] = {"target": EMR, "produces": [{"dataset": "sales", "register": "on_success"}]}
    world.deploy(document)
    upload(world, *hours_of("2026-03-02"))
    ends(world, "a")
    ends(world, "b")
    assert [run.correlation for run in world.runs("after")] == [{"day": "2026-03-02"}]
    assert world.ports.rows.get(Partition, "demo.sales", ("2026-03-02",)) is not None


# -- windows, and one partition for many runs --------------------------------------------------------------------------


@pytest.mark.parametrize("of", [{"from": "-2d", "to": "period"}, {"periods": 3, "ending": "period"}])
def test_t26_a_dag_waits_for_the_days_before_too(world: World, of: dict[str, Any]) -> None:
    world.deploy(app(per_day({"type": "partition", "dataset": "sales", "of": of})))
    upload(world, *(f"day=2026-03-0{day}" for day in (5, 3, 4, 6)), dataset="sales")
    assert begun(world) == [{"day": "2026-03-05"}, {"day": "2026-03-06"}]
    assert [len(world.context(start)["events"]) for start in world.runs(START)] == [3, 3]


def test_t27_a_week_starts_the_dags_of_its_days(world: World) -> None:
    world.deploy(app(per_day(period("models"))))
    for _ in range(2):
        upload(world, "week=2026-W10", dataset="models")
    days = [f"2026-03-0{day}" for day in range(2, 9)]
    assert [each["day"] for each in begun(world)] == days
    assert sorted(context["period"]["label"] for context in contexts(world, "a")) == days


# -- incomplete, and late ----------------------------------------------------------------------------------------------


def test_t28_a_dag_starts_incomplete_and_says_so(world: World) -> None:
    world.deploy(app(per_day(incomplete={"allow": 1})))
    upload(world, *(folder for folder in hours_of("2026-03-02") if folder[-2:] != "05"))
    assert "in demo.clicks: 05, or until 2026-03-03T00:00:00.000Z" in why(world, START)["why"]
    doze_until(world, END + HOUR)
    ends(world, "a")
    missing = [{"dataset": "demo.clicks", "partition": {"dt": "2026-03-02", "hour": "05"}}]
    assert [context["missing"] for node in "ab" for context in contexts(world, node)] == [missing] * 2
    assert "without 05 of demo.clicks" in views(world)[0]["fired_by"]


def test_t28_a_dag_waits_for_days_with_a_longer_timeout(world: World) -> None:
    with pytest.raises(ValidationError, match="less than the timeout of 1d"):
        world.deploy(app(per_day(incomplete={"after": "2d"})))
    world.deploy(app(per_day(incomplete={"after": "2d"}, timeout={"after": "3d"})))
    upload(world, *hours_of("2026-03-02")[:2])
    doze_until(world, END + 2 * DAY - 1)
    assert world.runs(START) == []
    doze_until(world, END + 2 * DAY)
    assert len(contexts(world, "a")[0]["missing"]) == 22


def test_t28_the_timeout_of_a_dag_counts_from_the_end_of_its_day(world: World) -> None:
    world.deploy(app(per_day(timeout={"after": "2h"})))
    upload(world, *hours_of("2026-03-02")[1:])
    doze_until(world, END + 2 * HOUR - 60_000)
    assert len(world.jobs(START)) == 1
    doze_until(world, END + 2 * HOUR + 60_000)
    assert (world.jobs(START), len(world.records(START)), world.runs(START)) == ([], 1, [])
    upload(world, hours_of("2026-03-02")[0])
    assert begun(world) == [{"day": "2026-03-02"}]


def test_t28_a_late_hour_runs_the_dag_of_the_day_again(world: World) -> None:
    world.deploy(app(per_day(incomplete={"after": "1h"}, late="again")))
    first, *others = hours_of("2026-03-02")
    upload(world, *others)
    doze_until(world, END + HOUR)
    ends(world, "a")
    ends(world, "b")
    upload(world, first)
    assert begun(world) == [{"day": "2026-03-02"}] * 2
    assert [len(world.context(start)["events"]) for start in world.runs(START)] == [23, 24]
    again = contexts(world, "a")[-1]
    assert (again["period"]["label"], "missing" in again) == ("2026-03-02", False)
    assert [view["state"] for view in views(world)] == ["SUCCEEDED", "RUNNING"]


def test_t28_a_day_of_a_dag_that_is_written_again_runs_once_more(world: World) -> None:
    world.deploy(app(per_day(late="again"), ready={"done_flag": "_SUCCESS"}, rewritten="again"))
    for folder in hours_of("2026-03-02"):
        world.upload(f"raw/clicks/{folder}/_SUCCESS", etag="a")
    world.settle()
    doze(world, "5s")
    for _ in range(2):
        world.upload("raw/clicks/dt=2026-03-02/hour=05/_SUCCESS", etag="b")
        world.settle()
    assert begun(world) == [{"day": "2026-03-02"}] * 2


def test_t28_a_late_hour_of_a_dag_is_ignored_by_default(world: World) -> None:
    world.deploy(app(per_day(incomplete={"after": "1h"})))
    first, *others = hours_of("2026-03-02")
    upload(world, *others)
    doze_until(world, END + HOUR)
    upload(world, first)
    assert len(world.runs(START)) == 1
    assert "is late" in why_schedule(world, START)["ended"][0]["reason"]


# -- the periods of a DAG ----------------------------------------------------------------------------------------------


def became(world: World, limit: int = 500) -> dict[str, str]:
    """What became of each day of the DAG, page by page."""
    found: dict[str, str] = {}
    cursor: str | None = None
    while True:
        page, _ = periods.page(world.ports, full(START), None, world.clock.now(), limit, cursor)
        found |= {each["values"]["day"]: each["state"] for each in read(page.items)}
        if (cursor := page.cursor) is None:
            return found


@pytest.mark.parametrize("limit", [1, 500])
def test_l23_the_state_of_a_day_is_that_of_its_dag_run(world: World, limit: int) -> None:
    world.deploy(app(per_day(period("sales"))))
    for day, node, state in (("24", "a", "FAILED"), ("25", "b", "SUCCESS"), ("27", "", "")):
        upload(world, f"day=2026-02-{day}", dataset="sales")
        ends(world, "a", state if node == "a" else "SUCCESS")
        if node == "b":
            ends(world, "b")
    world.pause(START)
    upload(world, "day=2026-02-28", dataset="sales")
    expected = {"24": "failed", "25": "succeeded", "26": "missing", "27": "running", "28": "waiting"}
    assert became(world, limit) == {f"2026-02-{day}": state for day, state in expected.items()} | {
        "2026-03-01": "missing"
    }
    page, _ = periods.page(world.ports, full(START), None, world.clock.now(), 1, None)
    assert "a is FAILED" in read(page.items)[0]["why"]


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"per": None}, "per", "expected a length of periods"),
    ({"trigger": {"type": "partition", "dataset": "clicks"}}, "trigger", "only partition leaves with of: period"),
    ({"trigger": {"type": "time", "expression": "@daily"}}, "trigger", "only partition leaves with of: period"),
    ({"trigger": all_of(period(), period("sales"), within="1h")}, "trigger.within", "no within with per"),
    ({"per": None, "trigger": {"type": "partition", "dataset": "sales"}, "late": "again"}, "late", "only with per"),
    ({"incomplete": {"after": "2d"}}, "incomplete.after", "less than the timeout of 1d"),
    ({"per": "15m"}, "per", "periods whose names the clocks of Europe/Paris show once"),
    ({"by": ["day"]}, "by", "no key day beside per: day"),
]


@pytest.mark.parametrize(("fields", "field", "text"), REFUSED)
def test_t25_what_a_dag_of_periods_refuses(fields: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        NewDag.model_validate(per_day(**fields))
    error = errors.from_validation(refused.value, NewDag)
    assert error.field == field
    assert text in error.message


@pytest.mark.parametrize(
    ("fields", "clicks", "field", "text"),
    [
        ({}, {"keys": ["region", "dt", "hour"]}, "trigger.dataset", "whose values of region are known"),
        ({}, {"period": None}, "trigger.dataset", "a dataset with a period, because of per: day"),
        ({"zone": "UTC"}, {}, "zone", "a zone, because the periods of demo.clicks are those of Europe/Paris"),
    ],
)
def test_t25_a_dataset_that_does_not_fit_a_dag(
    world: World, fields: dict[str, Any], clicks: dict[str, Any], field: str, text: str
) -> None:
    with pytest.raises(SluiceError) as refused:
        world.deploy(app(per_day(**fields), **clicks))
    assert refused.value.field == f"dags.daily.{field}"
    assert text in refused.value.message


def test_t25_a_dag_without_periods_is_stored_as_before() -> None:
    body = NewDag.model_validate(dag("a -> b")).definition().model_dump(mode="json", by_alias=True)
    assert not {"per", "incomplete", "late", "timeout"} & body.keys()


# -- a backfill runs periods of a DAG again ----------------------------------------------------------------------------

MARCH_2 = {"partitions": {"from": {"day": "2026-03-02"}, "to": {"day": "2026-03-02"}}}


def of_runs(world: World) -> list[str]:
    """The states of the DAG runs. Those of one instant have no order."""
    return sorted(view["state"] for view in views(world))


def state_of_2_march(world: World) -> str:
    page, _ = periods.page(world.ports, full(START), END - DAY, END, 1, None)
    return page.items[0]["state"]


def test_l23_a_backfill_leaves_a_day_alone_while_its_dag_runs(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02"))
    with pytest.raises(SluiceError, match="not in flight, got '1 running'"):
        begin(world, START, **MARCH_2)
    ends(world, "a")
    ends(world, "b")
    doze(world, "2m")  # the newest run is that which was claimed last
    backfill = begin(world, START, **MARCH_2)
    world.settle()
    assert of_runs(world) == ["RUNNING", "SUCCEEDED"]
    assert counts(world, START, backfill) == {"running": 1}
    assert state_of_2_march(world) == "running"
    ends(world, "a")
    ends(world, "b", "FAILED")
    assert state_of_2_march(world) == "failed"
    doze(world, "2m")
    assert counts(world, START, backfill) == {"failed": 1}


def test_l23_a_re_run_of_a_dag_comes_before_a_backfill(world: World) -> None:
    """The backfill has planned the day. Its turn comes when the former run of the DAG is under way again."""
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02"))
    ends(world, "a", "FAILED")
    backfill = begin(world, START, **MARCH_2)
    rerun(world, "failed")
    world.settle()
    assert of_runs(world) == ["RUNNING"]
    assert counts(world, START, backfill) == {"cancelled": 1}
    assert "of 2026-03-02 is under way" in reasons(world, START)[-1]


def test_l23_a_late_hour_of_a_dag_waits_for_the_backfill(world: World) -> None:
    """It begins when the last node of the backfill's DAG run has ended."""
    world.deploy(app(per_day(late="again", incomplete={"after": "1h"})))
    upload(world, *hours_of("2026-03-02")[:-1])
    doze_until(world, END + 2 * HOUR)
    ends(world, "a")
    ends(world, "b")
    backfill = begin(world, START, **MARCH_2)
    world.settle()
    upload(world, hours_of("2026-03-02")[-1])
    assert of_runs(world) == ["RUNNING", "SUCCEEDED"]
    assert f"of backfill {backfill}, which runs 2026-03-02" in why(world, START)["why"]
    ends(world, "a")
    ends(world, "b")
    assert of_runs(world) == ["RUNNING", "SUCCEEDED", "SUCCEEDED"]


def test_l23_a_backfill_of_failed_days_asks_the_runs_of_the_dag(world: World) -> None:
    world.deploy(app(per_day()))
    for day, outcome in (("2026-03-01", "SUCCESS"), ("2026-03-02", "FAILED")):
        upload(world, *hours_of(day))
        ends(world, "a")
        ends(world, "b", outcome)
    both = {"partitions": {"from": {"day": "2026-03-01"}, "to": {"day": "2026-03-02"}}, "only": "failed"}
    found = preview(world, START, **both)
    assert {entry["entry"]["day"]: entry["state"] for entry in found["entries"]} == {
        "2026-03-01": "succeeded",
        "2026-03-02": "failed",
    }
    begin(world, START, **both)
    world.settle()
    assert begun(world) == [{"day": "2026-03-01"}, {"day": "2026-03-02"}, {"day": "2026-03-02"}]


def test_l23_a_cancelled_backfill_cancels_its_dag_runs(world: World) -> None:
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02"))
    ends(world, "a", "FAILED")
    backfill = begin(world, START, **MARCH_2)
    world.settle()
    stop(world, START, backfill, runs=True)
    world.settle()
    world.finish("CANCELLED")
    doze(world, "2m")
    assert {"a": "CANCELLED", "b": "ABORTED"} in states(world)
    assert counts(world, START, backfill) == {"cancelled": 1}


def test_l23_the_failed_days_of_many_runs_of_a_dag(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backfill reads the nodes of a bounded number of runs. One of all days needs not read them."""
    monkeypatch.setattr(backfill_periods, "MAX_DAG_RUNS", 0)
    world.deploy(app(per_day()))
    upload(world, *hours_of("2026-03-02"))
    ends(world, "a", "FAILED")
    with pytest.raises(SluiceError, match="a range with at most 0 runs of the DAG, got 1"):
        begin(world, START, only="failed", **MARCH_2)
    begin(world, START, **MARCH_2)
    world.settle()
    assert of_runs(world) == ["FAILED", "RUNNING"]
