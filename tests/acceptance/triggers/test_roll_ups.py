"""One job for each period, which waits for exactly the partitions that the period has (T25)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import build
from chalicelib.core.instants import HOUR, Instant, parse_instant
from chalicelib.core.jobs.dry_run import dry_run
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.run import Run
from chalicelib.core.triggers.partition import GivenPartition
from chalicelib.core.writes import Create, Write
from chalicelib.flow import lookup, period_jobs
from chalicelib.flow.definitions import store
from chalicelib.flow.ingest.outbox import apply_outbox
from chalicelib.flow.schedules import actions
from chalicelib.flow.views import partitions
from tests.acceptance.words import all_of, any_of, doze, doze_until, kinds, on, partition, reasons, why, why_schedule
from tests.support.ledgers import Before
from tests.support.world import World, flights, full

PARIS = "Europe/Paris"
HOURS = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": PARIS}
DAYS = {"each": "day", "format": "day=%Y-%m-%d", "zone": PARIS}


def period(dataset: str = "clicks") -> dict[str, Any]:
    return {"type": "partition", "dataset": dataset, "of": "period"}


def app(schedules: dict[str, Any], **clicks: Any) -> dict[str, Any]:
    """An app with the hours ``clicks`` and the days ``sales``."""
    datasets = {
        "clicks": {"bucket": "lake", "prefix": "raw/clicks/", "keys": ["dt", "hour"], "period": HOURS} | clicks,
        "sales": {"bucket": "lake", "prefix": "raw/sales/", "keys": ["day"], "period": DAYS},
    }
    return flights(schedules) | {"datasets": datasets}


def per_day(trigger: dict[str, Any] | None = None, *constraints: Any, **fields: Any) -> dict[str, Any]:
    return on(trigger or period(), "clean", *constraints, per="day", zone=PARIS, **fields)


def hours_of(day: str, form: str = "dt=%Y-%m-%d/hour=%H", zone: str = PARIS) -> list[str]:
    """The folders of the hours that begin in a day of Paris, as a producer in ``zone`` writes them."""
    paris = ZoneInfo(PARIS)
    begun = datetime.fromisoformat(day).replace(tzinfo=paris).timestamp()
    instants = [begun + 3_600 * number for number in range(26)]
    own = [at for at in instants if f"{datetime.fromtimestamp(at, paris):%Y-%m-%d}" == day]
    written = (f"{datetime.fromtimestamp(at, ZoneInfo(zone)):{form}}" for at in own)
    return list(dict.fromkeys(written))


def upload(world: World, *folders: str, dataset: str = "clicks") -> None:
    for folder in folders:
        world.upload(f"raw/{dataset}/{folder}/part-0.parquet", size=5)
    world.settle()


@pytest.mark.parametrize(("day", "count"), [("2026-03-29", 23), ("2026-10-25", 24), ("2026-10-26", 24)])
def test_t25_a_local_day_needs_its_hours(world: World, day: str, count: int) -> None:
    world.deploy(app({"s": per_day()}))
    first, *others = hours_of(day)
    upload(world, *reversed(others))
    assert world.runs("s") == []
    upload(world, first)
    [run] = world.runs("s")
    context = world.context(run)
    assert run.correlation == context["correlation"] == {"day": day}
    assert len({event["path"] for event in context["events"]}) == count
    period = context["period"]
    assert (period["label"], period["zone"]) == (day, PARIS)
    assert (period["end"] - period["start"]) // 3_600_000 == {"2026-03-29": 23, "2026-10-25": 25}.get(day, 24)


def test_t25_why_names_the_missing_hours(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    upload(world, *(folder for folder in hours_of("2026-03-29") if folder[-2:] not in ("05", "17")))
    found = why(world, "s")
    assert "waits for 2 of 23 hours of 2026-03-29 Europe/Paris in demo.clicks: 05 and 17" in found["why"]
    assert found["tree"]["lacks"] == [{"dt": "2026-03-29", "hour": hour} for hour in ("05", "17")]
    assert (found["tree"]["have"], found["tree"]["need"]) == (21, 23)


def test_t25_a_producer_in_utc_fills_local_days(world: World) -> None:
    world.deploy(app({"s": per_day()}, period=HOURS | {"zone": "UTC"}))
    folders = hours_of("2026-10-25", zone="UTC")
    assert (folders[0], len(folders)) == ("dt=2026-10-24/hour=22", 25)
    upload(world, *folders[:-1])
    assert world.runs("s") == []
    assert "1 of 25 hours of 2026-10-25 Europe/Paris in demo.clicks: 2026-10-25T22" in why(world, "s")["why"]
    upload(world, folders[-1])
    [run] = world.runs("s")
    assert run.correlation == {"day": "2026-10-25"}


def test_t25_parts_before_the_job_count(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    world.disable("s")
    folders = hours_of("2026-03-02")
    upload(world, *folders[:20])
    world.enable("s")
    upload(world, *folders[20:])
    [run] = world.runs("s")
    assert len(world.context(run)["events"]) == 24


@pytest.mark.parametrize("trees", ["all", "any"])
def test_t25_two_datasets_of_one_day(world: World, trees: str) -> None:
    both = {"all": all_of, "any": any_of}[trees](period(), period("sales"))
    world.deploy(app({"s": per_day(both)}))
    upload(world, "day=2026-03-02", dataset="sales")
    if trees == "all":
        assert "waits for 24 of 24 hours of 2026-03-02" in why(world, "s")["why"]
        upload(world, *hours_of("2026-03-02"))
    [run] = world.runs("s")
    found = [event["dataset"] for event in world.context(run)["events"]]
    assert (found.count("demo.sales"), found.count("demo.clicks")) == (1, 24 if trees == "all" else 0)


def test_t25_days_gather_side_by_side(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    for pair in zip(hours_of("2026-03-02"), hours_of("2026-03-03"), strict=True):
        upload(world, *pair)
    assert [run.correlation for run in world.runs("s")] == [{"day": "2026-03-02"}, {"day": "2026-03-03"}]
    assert all(len(world.context(run)["events"]) == 24 for run in world.runs("s"))


def test_t25_the_timeout_counts_from_the_end_of_the_day(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    upload(world, *hours_of("2026-03-02")[1:])
    doze_until(world, parse_instant("2026-03-03T22:59:00Z"))
    [job] = world.jobs("s")
    doze_until(world, parse_instant("2026-03-03T23:01:00Z"))
    assert (world.jobs("s"), kinds(world, "s")) == ([], ["ABORTED"])
    upload(world, hours_of("2026-03-02")[0])
    [run] = world.runs("s")
    assert run.run_id != job.job_id and len(world.context(run)["events"]) == 24


def test_t25_a_part_after_the_start_is_ignored_on_record(world: World) -> None:
    either = any_of(period(), period("sales"))
    world.deploy(app({"s": per_day(either)}))
    upload(world, "day=2026-03-02", dataset="sales")
    upload(world, "dt=2026-03-02/hour=05")
    assert len(world.runs("s")) == 1 and world.jobs("s") == []
    assert "is late: the job of 2026-03-02 has started" in reasons(world, "s")[0]
    assert "is late" in why_schedule(world, "s")["ended"][0]["reason"]


def test_t25_a_job_that_is_met_and_waits_takes_more(world: World) -> None:
    either = any_of(period(), period("sales"))
    world.deploy(app({"s": per_day(either)}))
    world.pause("s")
    upload(world, "day=2026-03-02", dataset="sales")
    upload(world, "dt=2026-03-02/hour=05")
    world.resume("s")
    world.settle()
    [run] = world.runs("s")
    assert {event["dataset"] for event in world.context(run)["events"]} == {"demo.sales", "demo.clicks"}


def test_t25_keys_beside_the_period(world: World) -> None:
    period_of = HOURS | {"format": "dt=%Y-%m-%d/hour=%H"}
    world.deploy(app({"s": per_day(by=["region"])}, keys=["region", "dt", "hour"], period=period_of))
    for folder in hours_of("2026-03-02"):
        upload(world, f"region=eu/{folder}", f"region=us/{folder}")
    found = [run.correlation for run in world.runs("s")]
    assert sorted(found, key=str) == [{"day": "2026-03-02", "region": region} for region in ("eu", "us")]
    assert [len(world.context(run)["events"]) for run in world.runs("s")] == [24, 24]


@pytest.mark.parametrize("carry", [True, False])
def test_t25_an_update_while_a_day_gathers(world: World, carry: bool) -> None:
    world.deploy(app({"s": per_day()}))
    upload(world, *hours_of("2026-03-02")[:-1])
    world.put("s", per_day(priority=7) | ({} if carry else {"on_update": "drop"}))
    assert len(world.jobs("s")) == carry
    upload(world, hours_of("2026-03-02")[-1])
    [run] = world.runs("s")
    assert len(world.context(run)["events"]) == 24


def test_t25_a_day_that_ran_is_late_after_an_update(world: World) -> None:
    world.deploy(app({"s": per_day(any_of(period(), period("sales")))}))
    upload(world, "day=2026-03-02", dataset="sales")
    world.put("s", per_day(any_of(period(), period("sales")), priority=7))
    upload(world, "dt=2026-03-02/hour=05")
    assert len(world.runs("s")) == 1
    assert "is late" in reasons(world, "s")[-1]


def test_t25_a_dry_run_of_a_day(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    schedule = lookup.existing(world.ports, full("s"))[1]
    values = [dict(part.split("=") for part in folder.split("/")) for folder in hours_of("2026-03-29")]
    given = [GivenPartition(type="partition", dataset="clicks", partition=each) for each in values]
    datasets = period_jobs.datasets_of(world.ports, schedule)
    steps, left = dry_run(full("s"), schedule, given, world.clock.now(), datasets)
    assert [step.fires for step in steps] == [False] * 22 + [True]
    assert "waits for 22 of 23 hours of 2026-03-29" in steps[0].why.text and left == []
    stray = GivenPartition(type="partition", dataset="clicks", partition={"dt": "2026-03-29", "hour": "02"})
    [step], _ = dry_run(full("s"), schedule, [stray], world.clock.now(), datasets)
    assert step.why.text == "the partition names no period of its dataset"


def test_t25_the_page_of_a_partition_names_the_job(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    upload(world, "dt=2026-03-02/hour=05")
    dataset = period_jobs.datasets_of(world.ports, lookup.existing(world.ports, full("s"))[1])["demo.clicks"]
    for hour in ("05", "06"):
        found = partitions.one(world.ports, "demo.clicks", dataset, {"dt": "2026-03-02", "hour": hour})
        assert [job["job_id"] for job in found["waiting"]] == [job.job_id for job in world.jobs("s")]


def test_t25_a_run_now_of_a_day_gets_what_there_is(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    upload(world, *hours_of("2026-03-02")[:3])
    actions.run_now(world.ports, full("s"), {}, "r1", None, {"day": "2026-3-2"})
    world.settle()
    [run] = world.runs("s")
    context = world.context(run)
    assert (run.correlation, context["period"]["label"]) == ({"day": "2026-03-02"}, "2026-03-02")
    assert [event["kind"] for event in context["events"]] == ["run_now", *["partition"] * 3]
    for wrong in ({"day": "2026-02-30"}, {"dt": "2026-03-02"}):
        with pytest.raises(SluiceError) as refused:
            actions.run_now(world.ports, full("s"), {}, "r2", None, wrong)
        assert refused.value.field == "partition"


# -- listed values -----------------------------------------------------------------------------------------------------

REGIONS = {
    "keys": ["region", "day"],
    "period": DAYS,
    "values": {"region": ["us", "eu", "apac"]},
}


def test_t25_every_listed_value_of_the_day(world: World) -> None:
    world.deploy(app({"s": per_day()}, **REGIONS))
    upload(world, "region=us/day=2026-03-02")
    found = why(world, "s")
    assert "waits for 2 of 3 partitions of 2026-03-02 Europe/Paris in demo.clicks: eu and apac" in found["why"]
    assert found["tree"]["lacks"] == [{"region": region, "day": "2026-03-02"} for region in ("eu", "apac")]
    upload(world, "region=apac/day=2026-03-02", "region=eu/day=2026-03-02")
    [run] = world.runs("s")
    assert len(world.context(run)["events"]) == 3


def test_t25_hours_for_each_listed_value(world: World) -> None:
    fields = REGIONS | {"keys": ["region", "dt", "hour"], "period": HOURS}
    world.deploy(app({"s": per_day()}, **fields))
    folders = [f"region={region}/{folder}" for region in ("us", "eu", "apac") for folder in hours_of("2026-03-29")]
    upload(world, *folders[:22], *folders[23:])
    assert "waits for 1 of 69 partitions" in why(world, "s")["why"] and ": 23/us" in why(world, "s")["why"]
    upload(world, folders[22])
    assert len(world.runs("s")) == 1


def test_t25_a_value_that_is_not_listed_starts_nothing(world: World) -> None:
    world.deploy(app({"s": per_day()}, **REGIONS))
    upload(world, "region=mars/day=2026-03-02")
    assert world.jobs("s") == []
    assert "is none of the partitions that 2026-03-02 waits for" in reasons(world, "s")[0]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"values": {"region": ["us/eu"]}}, "a value of printable characters without '/'"),
        ({"values": {"region": ["us", "us"]}}, "distinct values"),
        ({"values": {"day": ["1"]}}, "keys that do not name the period"),
        ({"period": None}, "values only with a period"),
        ({"values": {"region": []}}, "at least 1 item"),
    ],
)
def test_t25_values_that_are_refused(world: World, fields: dict[str, Any], why: str) -> None:
    with pytest.raises((SluiceError, ValidationError)) as refused:
        world.deploy(app({}, **REGIONS | fields))
    assert why in str(refused.value)


# -- incomplete and late -----------------------------------------------------------------------------------------------

END = parse_instant("2026-03-02T23:00:00Z")  # of 2 March in Paris


def test_t28_one_may_be_missing_an_hour_after_the_day(world: World) -> None:
    world.deploy(app({"s": per_day(incomplete={"allow": 1})}))
    upload(world, *(folder for folder in hours_of("2026-03-02") if folder[-2:] != "05"))
    assert "in demo.clicks: 05, or until 2026-03-03T00:00:00.000Z" in why(world, "s")["why"]
    doze_until(world, END + HOUR - 1)
    assert world.runs("s") == []
    doze_until(world, END + HOUR)
    [run] = world.runs("s")
    context = world.context(run)
    assert "without 05 of demo.clicks" in run.fired_by.text
    assert context["missing"] == [{"dataset": "demo.clicks", "partition": {"dt": "2026-03-02", "hour": "05"}}]
    assert len(context["events"]) == 23


def test_t28_more_than_allowed_wait_until_after(world: World) -> None:
    world.deploy(app({"s": per_day(incomplete={"allow": 1, "after": "6h"})}))
    upload(world, *hours_of("2026-03-02")[:2])
    doze_until(world, END + 6 * HOUR - 1)
    assert world.runs("s") == []
    doze_until(world, END + 6 * HOUR)
    [run] = world.runs("s")
    assert (len(world.context(run)["events"]), len(world.context(run)["missing"])) == (2, 22)
    assert "without 02, 03, 04, 05 and 18 more of demo.clicks" in run.fired_by.text


def test_t28_an_old_day_has_as_long_to_become_complete(world: World) -> None:
    world.deploy(app({"s": per_day(incomplete={"allow": 1, "after": "6h"})}))
    upload(world, *hours_of("2026-02-02"))
    [run] = world.runs("s")
    assert "missing" not in world.context(run)
    upload(world, *hours_of("2026-02-03")[:2])
    doze_until(world, world.clock.now() + 6 * HOUR - 1)
    assert len(world.runs("s")) == 1
    doze_until(world, world.clock.now() + 1)
    assert len(world.runs("s")) == 2


def test_t28_a_part_before_the_deadline_completes_the_day(world: World) -> None:
    world.deploy(app({"s": per_day(incomplete={"after": "6h"})}))
    first, *others = hours_of("2026-03-02")
    upload(world, *others)
    doze_until(world, END + 6 * HOUR - 1_000)
    upload(world, first)
    [run] = world.runs("s")
    assert "missing" not in world.context(run)


def test_t28_a_dataset_without_any_partition_after_the_deadline(world: World) -> None:
    world.deploy(app({"s": per_day(all_of(period(), period("sales")), incomplete={"after": "1h"})}))
    upload(world, "day=2026-03-02", dataset="sales")
    doze_until(world, END + HOUR)
    [run] = world.runs("s")
    assert [event["dataset"] for event in world.context(run)["events"]] == ["demo.sales"]


def test_t28_a_late_part_runs_the_day_again(world: World) -> None:
    world.deploy(app({"s": per_day(incomplete={"after": "1h"}, late="again")}))
    first, second, *others = hours_of("2026-03-02")
    upload(world, *others)
    doze_until(world, END + HOUR)
    upload(world, first)
    upload(world, second)
    runs = world.runs("s")
    assert [run.correlation for run in runs] == [{"day": "2026-03-02"}] * 3
    assert sorted(len(world.context(run)["events"]) for run in runs) == [22, 23, 24]
    assert len({run.run_id for run in runs}) == 3


def test_t28_a_day_that_is_written_again_runs_again_once(world: World) -> None:
    fields = {"ready": {"done_flag": "_SUCCESS"}, "rewritten": "again"}
    world.deploy(app({"s": per_day(late="again")}, **fields))
    for folder in hours_of("2026-03-02"):
        world.upload(f"raw/clicks/{folder}/_SUCCESS", etag="a")
    world.settle()
    doze(world, "5s")
    for _ in range(2):
        world.upload("raw/clicks/dt=2026-03-02/hour=05/_SUCCESS", etag="b")
        world.settle()
    assert [len(world.context(run)["events"]) for run in world.runs("s")] == [24, 24]


def test_t28_a_late_part_is_ignored_by_default(world: World) -> None:
    world.deploy(app({"s": per_day(incomplete={"after": "1h"})}))
    first, *others = hours_of("2026-03-02")
    upload(world, *others)
    doze_until(world, END + HOUR)
    upload(world, first)
    assert len(world.runs("s")) == 1
    assert "is late: the job of 2026-03-02 has started" in reasons(world, "s")[-1]


# -- windows -----------------------------------------------------------------------------------------------------------


def window(dataset: str = "sales", **of: Any) -> dict[str, Any]:
    return {"type": "partition", "dataset": dataset, "of": of}


def days_of(first: str, count: int) -> list[str]:
    begun = date.fromisoformat(first)
    return [f"day={begun + timedelta(days=number)}" for number in range(count)]


def found(world: World) -> dict[str, list[str]]:
    """The days that each run got, by the label of its period."""
    runs = {next(iter((run.correlation or {}).values())): world.context(run)["events"] for run in world.runs("s")}
    return {label: [event["partition"]["day"] for event in events] for label, events in sorted(runs.items())}


def test_t26_a_week_needs_its_seven_days(world: World) -> None:
    world.deploy(app({"s": per_day(window(periods=7, ending="period")) | {"per": "week"}}))
    upload(world, *days_of("2026-03-02", 6), dataset="sales")
    assert "waits for 1 of 7 days of 2026-W10 Europe/Paris in demo.sales: 2026-03-08" in why(world, "s")["why"]
    upload(world, "day=2026-03-08", dataset="sales")
    assert list(found(world)) == ["2026-W10"]


@pytest.mark.parametrize("of", [{"from": "-6d", "to": "period"}, {"periods": 7, "ending": "period"}])
def test_t26_seven_days_up_to_each_day(world: World, of: dict[str, Any]) -> None:
    world.deploy(app({"s": per_day(window(**of))}))
    folders = days_of("2026-03-26", 9)  # the clocks change within
    upload(world, *reversed(folders[:7]), dataset="sales")
    assert list(found(world)) == ["2026-04-01"]
    upload(world, *folders[7:], dataset="sales")
    assert list(found(world)) == ["2026-04-01", "2026-04-02", "2026-04-03"]
    assert sorted(found(world)["2026-04-03"]) == [folder.removeprefix("day=") for folder in folders[2:]]


def test_t26_one_part_joins_each_job_of_its_windows(world: World) -> None:
    world.deploy(app({"s": per_day(window(**{"from": "-2d"}))}))
    upload(world, "day=2026-03-05", dataset="sales")
    labels = [job.correlation for job in world.jobs("s")]
    assert labels == [{"day": f"2026-03-0{number}"} for number in (5, 6, 7)]
    assert [job.leaves["0"].count for job in world.jobs("s")] == [1, 1, 1]
    world.upload("raw/sales/day=2026-03-05/part-1.parquet", size=5)
    world.settle()
    assert [job.leaves["0"].count for job in world.jobs("s")] == [1, 1, 1]


def test_t26_the_day_before(world: World) -> None:
    both = all_of(period("sales"), window(periods=1, ending="before"))
    world.deploy(app({"s": per_day(both)}))
    upload(world, "day=2026-03-05", dataset="sales")
    assert (
        "waits for 1 of 1 day for 2026-03-05 Europe/Paris in demo.sales: 2026-03-04" in why_schedule(world, "s")["why"]
    )
    upload(world, "day=2026-03-04", dataset="sales")
    assert sorted(found(world)["2026-03-05"]) == ["2026-03-04", "2026-03-05"]


def test_t26_month_to_date(world: World) -> None:
    world.deploy(app({"s": per_day(window(**{"from": "month", "to": "period"}))}))
    upload(world, *days_of("2026-03-30", 4), dataset="sales")
    assert {label: sorted(days) for label, days in found(world).items()} == {
        "2026-04-01": ["2026-04-01"],
        "2026-04-02": ["2026-04-01", "2026-04-02"],
    }


# -- what is refused ---------------------------------------------------------------------------------------------------

QUARTERS = {"each": "15m", "format": "dt=%Y-%m-%d/hour=%H:%M"}
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (on(period()), {}, "expected a length of periods"),
    (per_day({"type": "partition", "dataset": "clicks"}), {}, "only partition leaves with of: period"),
    (per_day(period() | {"count": 3}), {}, "either count or of"),
    (per_day() | {"zone": "UTC"}, {}, "expected a zone, because the periods of demo.clicks are those of Europe/Paris"),
    (per_day() | {"per": "15m"}, {}, "periods whose names the clocks of Europe/Paris show once"),
    (per_day(coalesce=False), {}, "expected true with per"),
    (per_day(all_of(period(), period("sales"), within="1h")), {}, "no within with per"),
    (on(period(), per="day", zone=PARIS, incomplete={}), {}, "expected allow, after, or both"),
    (on(partition("sales"), incomplete={"allow": 1}), {}, "incomplete only with per"),
    (on(partition("sales"), late="again"), {}, "late only with per"),
    (per_day(incomplete={"after": "2d"}), {}, "less than the timeout of 1d"),
    (per_day(by=["dt"]), {}, "keys that do not name the period of demo.clicks"),
    (per_day(window(periods=20_000)), {}, "less than or equal to 10000"),
    (per_day(window("clicks", **{"from": "-20000h"})), {}, "at most 10,000 partitions of demo.clicks"),
    (per_day(window(**{"from": "-1001d"})), {}, "at most 1,000 jobs for each partition of demo.sales"),
    (per_day(window(**{"from": "6d"})), {}, "a span back such as -6d"),
    (per_day(period() | {"of": "day"}), {}, "expected period, {periods: 7, ending: period}"),
    (per_day() | {"per": "yearly"}, {}, "expected one of 15m"),
    (per_day(), {"period": None}, "a dataset with a period, because of per: day"),
    (per_day(), {"keys": ["region", "dt", "hour"]}, "whose values of region are known"),
    (per_day(period("sales")) | {"zone": "Asia/Tokyo"}, {}, "expected a dataset of days in Asia/Tokyo"),
    (per_day() | {"per": {"each": "year", "zone": "UTC"}}, {"period": QUARTERS}, "at most 10,000 partitions"),
]


@pytest.mark.parametrize(("schedule", "clicks", "why"), REFUSED, ids=[why[:30] for _, _, why in REFUSED])
def test_t25_what_is_refused(world: World, schedule: dict[str, Any], clicks: dict[str, Any], why: str) -> None:
    with pytest.raises((SluiceError, ValidationError)) as refused:
        world.deploy(app({"s": schedule}, **clicks))
    assert why in str(refused.value)


# -- partitions beside the end of a job, a drain or an update ----------------------------------------------------------


def test_t25_a_part_after_the_timeout_begins_the_next_job(world: World) -> None:
    """Also if no check has ended the job that timed out."""
    world.deploy(app({"s": per_day(timeout={"after": "3h"})}))
    folders = hours_of("2026-03-02")
    upload(world, *folders[:23])
    [job] = world.jobs("s")
    world.clock.wait_until(END + 3 * HOUR + 1)
    upload(world, folders[23])
    [run] = world.runs("s")
    assert (kinds(world, "s"), len(world.context(run)["events"])) == (["ABORTED"], 24)
    assert run.run_id != job.job_id


def test_t25_a_part_waits_until_a_job_that_timed_out_ended(world: World) -> None:
    """The trigger is met, and the job may hold permits, so its check has to end it."""
    either = any_of(period(), period("sales"))
    world.deploy(app({"s": per_day(either, timeout={"after": "3h"})}))
    world.pause("s")
    upload(world, "day=2026-03-02", dataset="sales")
    world.clock.wait_until(END + 3 * HOUR + 1)
    with pytest.raises(ExceptionGroup, match="was not applied to all schedules"):
        upload(world, "dt=2026-03-02/hour=05")
    world.tick()
    doze(world, "2m")
    assert kinds(world, "s") == ["ABORTED"]
    world.resume("s")
    doze(world, "5s")
    [run] = world.runs("s")
    assert {event["dataset"] for event in world.context(run)["events"]} == {"demo.sales", "demo.clicks"}


def test_t25_a_drain_hides_no_part_from_a_job_that_waits(world: World) -> None:
    world.deploy(app({"s": per_day()}))
    folders = hours_of("2026-03-02")
    upload(world, *folders[:5])
    world.pause("s", "drain")
    upload(world, *folders[5:20])
    world.resume("s")
    doze(world, "1s")
    upload(world, *folders[20:])
    [run] = world.runs("s")
    assert len(world.context(run)["events"]) == 24


def registered_by(world: World, folder: str, at: Instant, replayed: bool = False) -> None:
    """Register an hour whose event was accepted at an instant, as an invocation that took long, and apply it."""
    dataset = period_jobs.datasets_of(world.ports, lookup.existing(world.ports, full("s"))[1])["demo.clicks"]
    texts = tuple(part.partition("=")[2] for part in folder.split("/"))
    row = Partition("demo.clicks", texts, build.partition_event("demo.clicks", dataset, texts, at, at), "x", replayed)
    assert world.ports.ledger.commit([Create(row)]) is None
    apply_outbox(world.ports, row)
    world.settle()


@pytest.mark.parametrize("replayed", [False, True])
def test_t25_a_part_that_starts_nothing_joins_a_job(world: World, replayed: bool) -> None:
    """It was accepted right before an update, and registered after the next one had begun the job. Or the run of a
    re-processing has registered it."""
    world.deploy(app({"s": per_day()}))
    accepted_at = world.clock.now() if replayed else world.clock.now() - 1
    first, late, other, *rest = hours_of("2026-03-02")
    upload(world, first)
    registered_by(world, late, accepted_at, replayed)
    registered_by(world, hours_of("2026-03-03")[0], accepted_at, replayed)
    [job] = world.jobs("s")
    assert job.correlation == {"day": "2026-03-02"}
    upload(world, other, *rest)
    [run] = world.runs("s")
    assert len(world.context(run)["events"]) == 24


@pytest.mark.parametrize("between", ["enable", "put"])
def test_t28_a_day_that_ran_is_late_after_a_disable(world: World, between: str) -> None:
    schedule = per_day(any_of(period(), period("sales")))
    world.deploy(app({"s": schedule}))
    upload(world, "day=2026-03-02", dataset="sales")
    world.disable("s")
    if between == "put":
        world.put("s", schedule | {"enabled": False, "priority": 7})
    world.enable("s")
    upload(world, "dt=2026-03-02/hour=05")
    assert len(world.runs("s")) == 1
    assert "is late: the job of 2026-03-02 has started" in reasons(world, "s")[-1]


def test_t25_other_periods_do_not_count_for_a_job(world: World) -> None:
    """A job waits for the partitions that its period had when it began."""
    document = app({"s": per_day()})
    world.deploy(document)
    upload(world, "dt=2026-03-02/hour=00")
    quarters = {"keys": ["dt", "hour", "minute"], "period": QUARTERS | {"format": "dt=%Y-%m-%d/hour=%H/minute=%M"}}
    store.put(world.ports, "dataset", "demo.clicks", document["datasets"]["clicks"] | quarters, "tester")
    upload(world, "dt=2026-03-02/hour=01/minute=15")
    [job] = world.jobs("s")
    assert [each.count for each in job.leaves.values()] == [1]
    assert "is none of the partitions that 2026-03-02 waits for" in reasons(world, "s")[0]


# -- the pages of a dataset --------------------------------------------------------------------------------------------


def dataset_of(world: World, name: str = "demo.clicks") -> Dataset:
    return period_jobs.datasets_of(world.ports, lookup.existing(world.ports, full("s"))[1])[name]


@pytest.mark.parametrize("updated", [False, True])
def test_t28_the_dataset_shows_which_parts_were_ignored(world: World, updated: bool) -> None:
    schedule = per_day(any_of(period(), period("sales")))
    world.deploy(app({"s": schedule, "other": per_day()}))
    upload(world, "day=2026-03-02", dataset="sales")
    upload(world, "dt=2026-03-02/hour=05")
    if updated:
        world.put("s", schedule | {"priority": 7})
    dataset, values = dataset_of(world), {"dt": "2026-03-02", "hour": "05"}
    page = partitions.one(world.ports, "demo.clicks", dataset, values)
    [record] = [each for each in page["ended"] if each["schedule"] == full("s")]
    items = [{"partition": values}, {"partition": values | {"hour": "06"}}]
    late, other = partitions.with_late(world.ports, "demo.clicks", dataset, items)
    [shown] = late["late"]
    assert shown["schedule"] == full("s") and "late" not in other
    for reason in (record["reason"], shown["reason"]):
        assert "is late: the job of 2026-03-02 has started" in str(reason.text)


def test_t25_the_page_of_a_part_names_what_found_it(world: World) -> None:
    """The job of a day has no mark of a partition that it found in the registry."""
    world.deploy(app({"s": per_day()}))
    world.disable("s")
    first, *others = hours_of("2026-03-02")
    upload(world, first)
    world.enable("s")
    upload(world, *others[:3])
    values = {"dt": "2026-03-02", "hour": "00"}
    page = partitions.one(world.ports, "demo.clicks", dataset_of(world), values)
    assert [job["job_id"] for job in page["waiting"]] == [job.job_id for job in world.jobs("s")]
    upload(world, *others[3:])
    page = partitions.one(world.ports, "demo.clicks", dataset_of(world), values)
    assert [run["run_id"] for run in page["runs"]] == [run.run_id for run in world.runs("s")] and not page["waiting"]


def _records_the_call(writes: Sequence[Write]) -> bool:
    return any(not isinstance(write, Create) and isinstance(getattr(write, "row", None), Run) for write in writes)


def test_t25_a_day_whose_start_was_aborted_has_not_run(world: World) -> None:
    """A disable comes between the claim and the start call."""
    either = any_of(period(), period("sales"))
    world.deploy(app({"s": per_day(either)}))
    calls = Before(world.ports.ledger, lambda: world.disable("s"), _records_the_call)
    world.ports = world.with_ports(ledger=calls)
    upload(world, "day=2026-03-02", dataset="sales")
    assert [run.state for run in world.runs("s")] == ["ABORTED"]
    world.enable("s")
    upload(world, "dt=2026-03-02/hour=05")
    run = world.runs("s")[-1]
    assert (run.state, len(world.context(run)["events"])) == ("STARTING", 2)
