"""A job waits for the values that the period before had: ``values: {region: seen_last}`` (T25)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, parse_instant
from chalicelib.core.jobs.dry_run import dry_run
from chalicelib.core.triggers.partition import GivenPartition
from chalicelib.core.triggers.parts import MAX_VALUES
from chalicelib.flow import lookup, period_jobs
from chalicelib.flow.definitions import store
from chalicelib.flow.schedules import actions
from tests.acceptance.words import all_of, any_of, doze_until, on, reasons
from tests.support.answers import explain
from tests.support.clock import NOON
from tests.support.world import World, flights, full

DAYS = {"each": "day", "format": "day=%Y-%m-%d"}
HALVES = {"each": "12h", "format": "day=%Y-%m-%d/hour=%H"}
SEEN = {"region": "seen_last"}
END = parse_instant("2026-03-03T00:00:00Z")  # of 2 March, which is the day of NOON
PERIOD = {"type": "partition", "dataset": "sales", "of": "period"}


def per_day(trigger: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return on(trigger or PERIOD, "clean", **{"per": "day", "incomplete": {"after": "6h"}} | fields)


def app(schedule: dict[str, Any] | None = None, **sales: Any) -> dict[str, Any]:
    dataset = {"bucket": "lake", "prefix": "raw/sales/", "keys": ["region", "day"], "period": DAYS, "values": SEEN}
    datasets = {
        "sales": dataset | sales,
        "rates": {"bucket": "lake", "prefix": "raw/rates/", "keys": ["day"], "period": DAYS},
    }
    return flights({"s": schedule or per_day()}) | {"datasets": datasets}


def folder(region: str, day: int, *hours: str) -> list[str]:
    return [f"region={region}/day=2026-03-{day:02}{hour and f'/hour={hour}'}" for hour in hours or ("",)]


def upload(world: World, *folders: str, dataset: str = "sales") -> None:
    for each in folders:
        world.upload(f"raw/{dataset}/{each}/part-0.parquet", size=5)
    world.settle()


def day(world: World, number: int, *regions: str) -> None:
    for region in regions:
        upload(world, *folder(region, number))


def regions(world: World) -> dict[str, list[str]]:
    """The regions that each run got, by the label of its period."""
    runs = {(run.correlation or {})["day"]: world.context(run)["events"] for run in world.runs("s")}
    return {label: sorted(event["partition"]["region"] for event in events) for label, events in runs.items()}


def told(world: World, label: str = "2026-03-02") -> Any:
    """`why` of the job of a day."""
    [job] = [job for job in world.jobs("s") if (job.correlation or {})["day"] == label]
    return explain.why_job(world.ports, job)


def missing(world: World) -> list[str]:
    """The regions that are missing on 2 March."""
    return [values["region"] for values in told(world)["tree"]["lacks"]]


def begun(world: World, schedule: dict[str, Any] | None = None, **sales: Any) -> World:
    """With the first day of March, of ``us`` and ``eu``. Its job waits until six in the evening of 2 March."""
    world.deploy(app(schedule, **sales))
    day(world, 1, "us", "eu")
    return world


def test_t25_the_first_period_takes_all_until_its_deadline(world: World) -> None:
    world.deploy(app())
    day(world, 2, "us", "eu")
    why = told(world)["why"]
    assert (
        "waits for all partitions of 2026-03-02 UTC in demo.sales that come, because the period before had no region"
        in why
    )
    assert "or until 2026-03-03T06:00:00.000Z" in why
    doze_until(world, END + 6 * HOUR - 1)
    assert world.runs("s") == []
    doze_until(world, END + 6 * HOUR)
    assert regions(world) == {"2026-03-02": ["eu", "us"]}
    assert "missing" not in world.context(world.runs("s")[0])


def test_t25_a_period_waits_for_what_the_one_before_had(world: World) -> None:
    begun(world)
    day(world, 2, "us")
    assert missing(world) == ["eu"]
    assert "waits for 1 of 2 partitions of 2026-03-02 UTC in demo.sales: eu, or until" in told(world)["why"]
    day(world, 2, "eu")
    assert regions(world) == {"2026-03-02": ["eu", "us"]}


def test_t25_after_an_empty_period_as_for_the_first(world: World) -> None:
    begun(world)
    day(world, 3, "us")
    assert "because the period before had no region" in told(world, "2026-03-03")["why"]
    doze_until(world, END + DAY + 6 * HOUR)
    assert regions(world)["2026-03-03"] == ["us"]


@pytest.mark.parametrize("order", [("mars", "us", "eu"), ("us", "mars", "eu"), ("us", "eu")])
def test_t25_a_new_value_joins_the_job_that_waits(world: World, order: tuple[str, ...]) -> None:
    begun(world)
    for number, region in enumerate(order):
        assert "2026-03-02" not in regions(world) and number < 3
        day(world, 2, region)
    assert regions(world)["2026-03-02"] == sorted(order)
    day(world, 3, "us", "eu")
    assert ("2026-03-03" in regions(world)) == ("mars" not in order)


def test_t25_a_job_waits_for_all_parts_of_a_new_value(world: World) -> None:
    world.deploy(app(keys=["region", "day", "hour"], period=HALVES))
    upload(world, *folder("us", 1, "00"), *folder("us", 2, "00"), *folder("mars", 2, "12"), *folder("us", 2, "12"))
    assert told(world)["tree"]["lacks"] == [{"region": "mars", "day": "2026-03-02", "hour": "00"}]
    upload(world, *folder("mars", 2, "00"))
    assert regions(world) == {"2026-03-02": ["mars", "mars", "us", "us"]}


def test_t25_a_job_that_needs_no_more_takes_a_new_value_along(world: World) -> None:
    """Without its other hours."""
    world.deploy(app(keys=["region", "day", "hour"], period=HALVES))
    upload(world, *folder("us", 1, "00"))
    world.pause("s")
    upload(world, *folder("us", 2, "00", "12"), *folder("mars", 2, "12"))
    world.resume("s")
    world.settle()
    assert regions(world) == {"2026-03-02": ["mars", "us", "us"]}
    lacks = [each["partition"] for each in world.context(world.runs("s")[0])["missing"]]
    assert lacks == [{"region": "mars", "day": "2026-03-02", "hour": "00"}]


def test_t25_a_value_that_is_gone_holds_until_the_deadline(world: World) -> None:
    begun(world)
    day(world, 2, "us")
    doze_until(world, END + 6 * HOUR)
    assert regions(world)["2026-03-02"] == ["us"]
    run = next(run for run in world.runs("s") if run.correlation == {"day": "2026-03-02"})
    assert world.context(run)["missing"] == [
        {"dataset": "demo.sales", "partition": {"region": "eu", "day": "2026-03-02"}}
    ]
    day(world, 3, "us")  # the day before had no eu
    assert regions(world)["2026-03-03"] == ["us"]


def test_t25_allow_counts_of_the_values_that_were_seen(world: World) -> None:
    begun(world, per_day(incomplete={"allow": 1, "after": "3d"}, timeout="never"))
    day(world, 2, "us")
    doze_until(world, END + DAY - 1)
    assert "2026-03-02" not in regions(world)
    doze_until(world, END + DAY)
    assert regions(world)["2026-03-02"] == ["us"]


@pytest.mark.parametrize("late", ["apac", "us"])
def test_t25_the_period_before_changes_while_a_job_waits(world: World, late: str) -> None:
    """A value that comes late for it, or one that is written again: the set of the job stays as it was."""
    begun(world, ready={"done_flag": "_SUCCESS"}, rewritten="again")
    for number, region in ((1, "us"), (1, "eu"), (2, "us"), (1, late), (1, late)):
        world.upload(f"raw/sales/{folder(region, number)[0]}/_SUCCESS", etag=f"{number}{world.clock.now()}")
        world.settle()
        world.pass_by("5s")
    assert missing(world) == ["eu"]
    world.upload(f"raw/sales/{folder('eu', 2)[0]}/_SUCCESS", etag="x")
    world.settle()
    assert regions(world)["2026-03-02"] == ["eu", "us"]


LAYOUTS: list[tuple[list[str], str, dict[str, Any]]] = [
    (["region", "day"], "region={region}/day=2026-03-{day:02}", DAYS),
    (["day", "region"], "day=2026-03-{day:02}/region={region}", DAYS),
    (["region", "day", "hour"], "region={region}/day=2026-03-{day:02}/hour=12", HALVES),
    (["day", "region", "hour"], "day=2026-03-{day:02}/region={region}/hour=12", HALVES),
    (["day", "hour", "region"], "day=2026-03-{day:02}/hour=12/region={region}", HALVES),
]


@pytest.mark.parametrize(("keys", "path", "period"), LAYOUTS, ids=["/".join(keys) for keys, _, _ in LAYOUTS])
def test_t25_the_key_may_stand_anywhere(world: World, keys: list[str], path: str, period: dict[str, Any]) -> None:
    """Values whose texts begin alike, and some of other days alone."""
    world.deploy(app(keys=keys, period=period))
    names = ["eu", "eu-x", "eu0", "S\u00e3o", "007", "7"]
    upload(world, *(path.format(region=region, day=1) for region in names))
    upload(world, *(path.format(region=region, day=number) for region, number in (("old", 28), ("eu-", 3))))
    upload(world, path.format(region="eu", day=2))
    assert set(missing(world)) == set(names) - ({"eu"} if "hour" not in keys else set())


def test_t25_values_before_the_schedule_count(world: World) -> None:
    world.deploy(app())
    world.disable("s")
    day(world, 1, "us", "eu", "apac")
    day(world, 2, "us", "mars")
    world.enable("s")
    day(world, 2, "eu")
    assert missing(world) == ["apac"]
    day(world, 2, "apac")
    assert regions(world) == {"2026-03-02": ["apac", "eu", "mars", "us"]}


@pytest.mark.parametrize("late", ["ignore", "again"])
def test_t25_a_new_value_after_the_start_is_late(world: World, late: str) -> None:
    begun(world, per_day(late=late))
    day(world, 2, "us", "eu", "mars")
    runs = [run for run in world.runs("s") if run.correlation == {"day": "2026-03-02"}]
    assert sorted(len(world.context(run)["events"]) for run in runs) == ([2, 3] if late == "again" else [2])
    assert len(reasons(world, "s")) == (0 if late == "again" else 1)


def test_t25_values_beside_another_dataset_and_another_key(world: World) -> None:
    both = all_of(PERIOD, PERIOD | {"dataset": "rates"})
    world.deploy(app(per_day(both, by=[]), keys=["kind", "region", "day"], values=SEEN | {"kind": ["a", "b"]}))
    for number, kind, region in ((1, "a", "us"), (1, "b", "eu"), (2, "a", "us")):
        upload(world, f"kind={kind}/{folder(region, number)[0]}")
    assert "waits for 3 of 4 partitions of 2026-03-02 UTC in demo.sales: " in told(world)["why"]
    upload(world, "day=2026-03-02", dataset="rates")
    for kind, region in (("a", "eu"), ("b", "us"), ("b", "eu")):
        assert world.runs("s") == []
        upload(world, f"kind={kind}/{folder(region, 2)[0]}")
    assert len(world.context(world.runs("s")[0])["events"]) == 5


def test_t25_each_value_of_by_has_its_own_set(world: World) -> None:
    world.deploy(app(per_day(by=["kind"]), keys=["kind", "region", "day"]))
    for number, kind, region in ((1, "a", "us"), (1, "b", "us"), (1, "b", "eu"), (2, "a", "us"), (2, "b", "us")):
        upload(world, f"kind={kind}/{folder(region, number)[0]}")
    assert [run.correlation for run in world.runs("s")] == [{"day": "2026-03-02", "kind": "a"}]


def test_t25_the_days_of_a_week_of_regions(world: World) -> None:
    """The week before decides, and not the day before, which is in the same week."""
    week = {"keys": ["region", "week"], "period": {"each": "week", "format": "week=%G-W%V"}}
    world.deploy(app(**week))
    upload(world, "region=us/week=2026-W09", "region=eu/week=2026-W09")
    upload(world, "region=us/week=2026-W10")
    for number in range(2, 9):
        assert "waits for 1 of 2 partitions" in told(world, f"2026-03-{number:02}")["why"]
    upload(world, "region=eu/week=2026-W10")
    assert sorted(regions(world)) == [f"2026-03-{number:02}" for number in range(2, 9)]


def test_t25_a_run_now_gets_all_that_was_seen(world: World) -> None:
    begun(world)
    day(world, 2, "us", "mars")
    for label in ("2026-03-02", "2026-02-02"):
        actions.run_now(world.ports, full("s"), {}, label, None, {"day": label})
    world.settle()
    events = {(run.correlation or {})["day"]: world.context(run)["events"] for run in world.runs("s")}
    assert [len(events[label]) for label in ("2026-03-02", "2026-02-02")] == [3, 1]


def test_t25_a_dry_run_begins_with_its_first_period(world: World) -> None:
    world.deploy(app())
    given = [
        GivenPartition(type="partition", dataset="sales", partition={"region": region, "day": "2026-03-02"}, at=at)
        for region, at in (("us", None), ("eu", None), ("us", "2026-03-03T06:00:00Z"))
    ]
    schedule = lookup.existing(world.ports, full("s"))[1]
    steps, _ = dry_run(full("s"), schedule, given, NOON, period_jobs.datasets_of(world.ports, schedule))
    assert [(step.event, step.fires) for step in steps][2] == ("time passes", True)
    assert "2 of 2 partitions of 2026-03-02 UTC in demo.sales came" in steps[2].why.text


HOURS = {"each": "hour", "format": "day=%Y-%m-%d/hour=%H"}
MANY: list[tuple[list[str], str, dict[str, Any], int, str]] = [
    (["region", "day"], "region=r{}/day=2026-03-01", DAYS, MAX_VALUES + 1, "got 'more'"),
    (["day", "region"], "day=2026-03-01/region=r{}", DAYS, MAX_VALUES + 1, "got 'more'"),
    (["region", "day"], "region=r{}/day=2026-01-01", DAYS, MAX_VALUES + 1, "got 'more'"),
    (["region", "day", "hour"], "region=r{}/day=2026-03-01/hour=01", HOURS, 417, "got '10,008 partitions to look up'"),
]


@pytest.mark.parametrize(("keys", "path", "period", "count", "got"), MANY, ids=[each[1] for each in MANY])
def test_t25_more_values_than_a_job_can_have(
    world: World, keys: list[str], path: str, period: dict[str, Any], count: int, got: str
) -> None:
    world.deploy(app(keys=keys, period=period))
    world.disable("s")
    upload(world, *(path.format(number) for number in range(count)))
    world.enable("s")
    upload(world, path.replace("03-01", "03-02").replace("01-01", "03-02").format(0))
    assert world.jobs("s") == []
    assert f"expected at most 1,000 values of region in demo.sales, {got}" in reasons(world, "s")[0]


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (per_day(incomplete=None), {}, "expected after, because demo.sales has values: {region: seen_last}"),
    (per_day(incomplete={"allow": 1}), {}, "expected after, because demo.sales"),
    (per_day(PERIOD | {"of": {"from": "-6d"}}), {}, "expected of: period, because demo.sales has values"),
    (per_day(), {"values": {"region": "seen"}}, "expected a list of values, or seen_last"),
    (per_day(), {"keys": ["a", "region", "day"], "values": SEEN | {"a": "seen_last"}}, "seen_last for one key"),
    (per_day(), {"values": {"day": "seen_last"}}, "keys that do not name the period"),
    (per_day(by=["region"], values=SEEN), {}, "valid tuple"),
    (per_day(any_of(*[PERIOD] * 3)), {"values": {"region": [f"{'x' * 80}{n}" for n in range(900)]}}, "200,000 bytes"),
]


@pytest.mark.parametrize(("schedule", "sales", "why"), REFUSED, ids=[why[:40] for _, _, why in REFUSED])
def test_t25_seen_values_that_are_refused(world: World, schedule: Any, sales: dict[str, Any], why: str) -> None:
    with pytest.raises((SluiceError, ValidationError)) as refused:
        world.deploy(app(schedule, **sales))
    assert why in str(refused.value)


@pytest.mark.parametrize("later", [SEEN, {"region": ["us", "apac"]}])
def test_t25_the_list_of_a_dataset_changes_while_a_job_waits(world: World, later: dict[str, Any]) -> None:
    document = app(values={"region": ["us", "eu"]} if later == SEEN else SEEN)
    world.deploy(document)
    day(world, 1, "us", "eu")
    day(world, 2, "us")
    store.put(world.ports, "dataset", "demo.sales", document["datasets"]["sales"] | {"values": later}, "tester")
    assert missing(world) == ["eu"]
    day(world, 2, "eu")
    assert regions(world)["2026-03-02"] == ["eu", "us"]


def test_t25_any_of_two_datasets_starts_by_the_other(world: World) -> None:
    begun(world, per_day(any_of(PERIOD, PERIOD | {"dataset": "rates"})))
    upload(world, "day=2026-03-05", dataset="rates")
    [run] = world.runs("s")
    assert [event["dataset"] for event in world.context(run)["events"]] == ["demo.rates"]
