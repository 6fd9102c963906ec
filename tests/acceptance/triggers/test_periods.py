"""Partitions that are periods (T24): folders of any padding become one partition, and its run gets the period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chalicelib.core import zones
from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, iso, millis, parse_instant
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.ingest.objects import register_values
from chalicelib.flow.schedules import actions
from tests.acceptance.words import all_of, on, partition, size, why_schedule
from tests.support.backfills import begin, preview
from tests.support.world import World, flights, full
from tests.support.zone_rules import hours, made, use

HOURS = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": "Europe/Paris"}
BY = ["dt", "hour"]


def clicks(schedules: dict[str, Any], period: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    """An app with the hourly dataset ``clicks``."""
    dataset: dict[str, Any] = {"bucket": "lake", "prefix": "raw/clicks/", "keys": BY, **fields}
    return flights(schedules) | {"datasets": {"clicks": dataset | ({"period": period} if period is not None else {})}}


def upload(world: World, *folders: str, name: str = "part-0.parquet") -> None:
    for folder in folders:
        world.upload(f"raw/clicks/{folder}/{name}", size=5)
        world.settle()


def ignored(world: World) -> list[tuple[str, str]]:
    """The code and the folder of each object that is noted, the newest first."""
    row = world.ports.rows.get(IgnoredObjects, "demo.clicks")
    return [(each["code"], each["of"]) for each in row.objects] if row is not None else []


def registered(world: World) -> list[str]:
    page = world.ports.catalog.partitions("demo.clicks", 1_000, None)
    return ["/".join(row.values) for row in page.items]


def stored(world: World) -> Dataset:
    row = world.ports.rows.get(Definition, "dataset", "demo.clicks")
    assert row is not None
    return Dataset.model_validate(row.document)


# -- the context of a run ----------------------------------------------------------------------------------------------


def test_t24_a_padded_folder_gives_its_run_the_period(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    upload(world, "dt=2026-03-02/hour=07")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    begun = parse_instant("2026-03-02T06:00:00Z")
    assert event["period"] == {
        "start": begun,
        "end": begun + HOUR,
        "zone": "Europe/Paris",
        "label": "2026-03-02T07",
    }
    assert (run.correlation, event["partition"]) == ({"dt": "2026-03-02", "hour": "07"},) * 2


def of_day(day: str) -> list[str]:
    """The folders of a local day, as a producer in Paris writes them: one for each hour that its clocks show."""
    paris = ZoneInfo("Europe/Paris")
    begun = datetime.fromisoformat(day).replace(tzinfo=paris).timestamp()
    shown = (datetime.fromtimestamp(begun + 3_600 * number, paris) for number in range(26))
    return [f"dt={day}/hour={at:%H%z}" for at in shown if f"{at:%Y-%m-%d}" == day]


@pytest.mark.parametrize(("day", "count"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-10-26", 24)])
def test_t24_the_hours_of_a_local_day_fill_it(world: World, day: str, count: int) -> None:
    period = HOURS | {"format": "dt=%Y-%m-%d/hour=%H%z"}
    world.deploy(clicks({"s": on(partition("clicks", count=count))}, period))
    upload(world, *reversed(of_day(day)))
    [run] = world.runs("s")
    found = sorted(world.context(run)["events"], key=lambda event: event["period"]["start"])
    spans = [(event["period"]["start"], event["period"]["end"]) for event in found]
    paris = ZoneInfo("Europe/Paris")
    begun = datetime.fromisoformat(day).replace(tzinfo=paris)
    assert spans[0][0] == millis(begun)
    assert spans[-1][1] == millis(begun + timedelta(days=1))
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    assert len({event["period"]["label"] for event in found}) == count


@pytest.mark.parametrize(("hour", "long"), [("01", 1), ("02", 2), ("03", 1)])
def test_t24_one_folder_of_an_hour_that_comes_twice(world: World, hour: str, long: int) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    upload(world, f"dt=2026-10-25/hour={hour}")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert event["period"]["end"] - event["period"]["start"] == long * HOUR


def test_t24_an_object_that_is_counted_by_size_has_its_period(world: World) -> None:
    world.deploy(clicks({"s": on(size("5 B", "clicks"))}, HOURS))
    upload(world, "dt=2026-03-02/hour=7")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert (event["period"]["label"], event["partition"]) == ("2026-03-02T07", {"dt": "2026-03-02", "hour": "07"})


def test_t24_without_a_period_nothing_changes(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"))}, None))
    upload(world, "dt=2026-03-02/hour=7")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert "period" not in event
    assert registered(world) == ["2026-03-02/7"]


# -- one partition for each period -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["hour=7", "hour=07"])
def test_t24_padded_and_bare_folders_are_one_partition(world: World, first: str) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    other = "hour=07" if first == "hour=7" else "hour=7"
    upload(world, f"dt=2026-03-02/{first}", f"dt=2026-03-02/{other}", f"dt=2026-03-02/{first}")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert (event["partition"]["hour"], event["path"]) == ("07", f"s3://lake-bucket/raw/clicks/dt=2026-03-02/{first}/")
    assert registered(world) == ["2026-03-02/07"]
    assert ignored(world) == [("other_folder", f"dt=2026-03-02/{other}")]
    told = why_schedule(world, "s")["why"]
    assert f"dt=2026-03-02/{other}/part-0.parquet came to demo.clicks" in told
    assert f"its folder is a second one of the period whose partition is {event['path']}" in told


def test_t24_escaped_and_plain_folders_are_one_partition(world: World) -> None:
    period = HOURS | {"format": "dt=%Y-%m-%d/hour=%H:00"}
    world.deploy(clicks({"s": on(partition("clicks"))}, period))
    upload(world, "dt=2026-03-02/hour=07%3A00", "dt=2026-03-02/hour=7:00", "dt=2026-03-02/hour=07%3A00")
    assert len(world.runs("s")) == 1
    assert registered(world) == ["2026-03-02/07:00"]
    assert ignored(world) == [("other_folder", "dt=2026-03-02/hour=7:00")]


def test_t24_datasets_join_whatever_their_padding(world: World) -> None:
    both = all_of(partition("clicks"), partition("views"))
    app = clicks({"join": on(both, "join", by=BY)}, HOURS)
    app["datasets"]["views"] = app["datasets"]["clicks"] | {"prefix": "raw/views/"}
    world.deploy(app)
    upload(world, "dt=2026-03-02/hour=7")
    world.upload("raw/views/dt=2026-3-2/hour=07/part-0.parquet")
    world.settle()
    [run] = world.runs("join")
    assert run.correlation == {"dt": "2026-03-02", "hour": "07"}
    assert {event["path"] for event in world.context(run)["events"]} == {
        "s3://lake-bucket/raw/clicks/dt=2026-03-02/hour=7/",
        "s3://lake-bucket/raw/views/dt=2026-3-2/hour=07/",
    }


def test_t24_each_segment_of_a_period_is_a_partition(world: World) -> None:
    days = {"each": "day", "format": "dt=%Y-%m-%d"}
    app = clicks({"s": on(partition("clicks"), by=["region", "dt"])}, days, keys=["region", "dt"])
    world.deploy(app)
    upload(world, "region=eu/dt=2026-3-2", "region=us/dt=2026-03-02", "region=eu/dt=2026-03-02")
    assert sorted(str(run.correlation) for run in world.runs("s")) == [
        "{'region': 'eu', 'dt': '2026-03-02'}",
        "{'region': 'us', 'dt': '2026-03-02'}",
    ]
    assert ignored(world) == [("other_folder", "region=eu/dt=2026-03-02")]


def test_t24_a_flag_in_a_second_folder_starts_nothing(world: World) -> None:
    ready = {"ready": {"done_flag": "_SUCCESS"}, "rewritten": "again"}
    world.deploy(clicks({"s": on(partition("clicks"))}, HOURS, **ready))
    upload(world, "dt=2026-03-02/hour=07", name="_SUCCESS")
    world.pass_by("1m")
    upload(world, "dt=2026-03-02/hour=7", name="_SUCCESS")
    assert len(world.runs("s")) == 1
    assert ignored(world) == [("other_folder", "dt=2026-03-02/hour=7")]


# -- names of no period ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("dt=2026-03-02/hour=24", "expected a time of the calendar"),
        ("dt=2026-02-30/hour=01", "expected a time of the calendar"),
        ("dt=2026-03-29/hour=02", "expected a time that the clocks of Europe/Paris show"),
        ("dt=__HIVE_DEFAULT_PARTITION__/hour=01", "expected a value of the form dt=%Y-%m-%d"),
        ("dt=2026-03-02/hour=x", "expected a value of the form hour=%H"),
        ("dt=9999-12-31/hour=00", "expected a year from 1583 to 9998"),
    ],
)
def test_t24_a_folder_of_no_period_is_told_and_starts_nothing(world: World, folder: str, why: str) -> None:
    world.deploy(clicks({"s": on(partition("clicks"))}, HOURS))
    upload(world, folder)
    assert (world.runs("s"), registered(world)) == ([], [])
    assert ignored(world) == [("no_period", folder)]
    assert f"belongs to no partition: its folder names no period: {why}" in why_schedule(world, "s")["why"]


@pytest.mark.parametrize("ready", [{}, {"done_flag": "_SUCCESS"}, {"manifest": "files.json"}])
def test_t24_bookkeeping_in_a_folder_of_no_period(world: World, ready: dict[str, str]) -> None:
    world.deploy(clicks({"s": on(partition("clicks"))}, HOURS, ready=ready))
    upload(world, "dt=x/hour=1", name=".part-0.crc")
    upload(world, "dt=x/hour=1", name="_temporary/0/part-0")
    assert (registered(world), ignored(world)) == ([], [])


@pytest.mark.parametrize("name", ["_SUCCESS", "files.json"])
def test_t24_a_flag_in_a_folder_of_no_period_is_told(world: World, name: str) -> None:
    ready = {"done_flag": name} if name == "_SUCCESS" else {"manifest": name}
    world.deploy(clicks({"s": on(partition("clicks"))}, HOURS, ready=ready))
    upload(world, "dt=x/hour=1", name=name)
    assert (registered(world), ignored(world)) == ([], [("no_period", "dt=x/hour=1")])


def test_t24_bytes_in_a_folder_of_no_period_count(world: World) -> None:
    world.deploy(clicks({"s": on(size("5 B", "clicks"))}, HOURS))
    upload(world, "dt=x/hour=1")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert (event["bytes"], event["partition"], "period" in event) == (5, {"dt": "x", "hour": "1"}, False)


def test_t24_a_manifest_in_a_bare_folder_makes_its_period_ready(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS, ready={"manifest": "files.json"}))
    world.upload("raw/clicks/dt=2026-03-02/hour=7/files.json", text='["a", "b"]')
    world.settle()
    upload(world, "dt=2026-03-02/hour=7", name="a")
    assert "that have not come" in why_schedule(world, "s")["why"]
    upload(world, "dt=2026-03-02/hour=7", name="b")
    upload(world, "dt=2026-03-02/hour=7", name="b")
    [run] = world.runs("s")
    assert run.correlation == {"dt": "2026-03-02", "hour": "07"}


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hour", ["7", "07", 7])
def test_t24_requests_name_a_period_with_any_padding(world: World, hour: str | int) -> None:
    world.deploy(clicks({}, HOURS))
    upload(world, "dt=2026-03-02/hour=7")
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    named = {"dt": "2026-03-02", "hour": hour}
    texts = {key: str(value) for key, value in named.items()}
    assert preview(world, "s", partitions={"values": [named]})["first"] == [{"dt": "2026-03-02", "hour": "07"}]
    begin(world, "s", partitions={"values": [named, {"dt": "2026-3-2", "hour": "07"}]})
    world.settle()
    world.finish()
    actions.run_now(world.ports, full("s"), {}, "r2", None, texts)
    world.settle()
    world.finish()
    reprocess.begin(world.ports, "demo", Reprocess.model_validate({"dataset": "clicks", "partition": named}), "t", "r3")
    world.settle()
    runs = world.runs("s")
    assert [run.correlation for run in runs] == [{"dt": "2026-03-02", "hour": "07"}] * 3
    paths = {event["path"] for run in runs for event in world.context(run)["events"] if event["kind"] == "partition"}
    assert paths == {"s3://lake-bucket/raw/clicks/dt=2026-03-02/hour=7/"}


def test_t24_an_unregistered_period_has_the_folder_of_the_format(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    begin(world, "s", partitions={"values": [{"dt": "2026-3-2", "hour": 7}]})
    world.settle()
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert event["path"] == "s3://lake-bucket/raw/clicks/dt=2026-03-02/hour=07/"
    assert event["period"]["label"] == "2026-03-02T07"


def test_t24_requests_for_no_period_are_refused(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    named = {"dt": "2026-03-29", "hour": "02"}
    expected = "expected a time that the clocks of Europe/Paris show, got 'dt=2026-03-29/hour=02'"
    with pytest.raises(SluiceError, match=expected) as failure:
        preview(world, "s", partitions={"values": [named]})
    assert failure.value.field == "partitions.values.0"
    with pytest.raises(SluiceError, match=expected):
        reprocess.preview(world.ports, "demo", Reprocess.model_validate({"dataset": "clicks", "partition": named}))
    with pytest.raises(SluiceError, match=expected):
        actions.run_now(world.ports, full("s"), {}, "r1", None, named)
    with pytest.raises(SluiceError, match=expected) as failure:
        register_values(world.ports, "demo.clicks", stored(world), {"partition": named})
    assert (failure.value.field, failure.value.hint) == ("partition", "Europe/Paris skips it")
    assert registered(world) == []


def test_t24_a_period_is_registered_once_by_requests(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    for hour in ("7", "07", 7):
        row = register_values(
            world.ports, "demo.clicks", stored(world), {"partition": {"dt": "2026-03-02", "hour": hour}}
        )
        assert (row.values, row.event.path) == (
            ("2026-03-02", "07"),
            "s3://lake-bucket/raw/clicks/dt=2026-03-02/hour=7/",
        )
    world.settle()
    assert len(world.runs("s")) == 1


def test_t24_a_backfill_between_periods(world: World) -> None:
    world.deploy(clicks({}, HOURS))
    upload(world, *(f"dt=2026-03-0{day}/hour={hour}" for day in (1, 2) for hour in (9, 10)))
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    bounds = {"from": {"dt": "2026-03-01", "hour": 10}, "to": {"dt": "2026-03-02", "hour": 9}}
    assert preview(world, "s", partitions=bounds)["first"] == [
        {"dt": "2026-03-01", "hour": "10"},
        {"dt": "2026-03-02", "hour": "09"},
    ]


# -- changes of the dataset --------------------------------------------------------------------------------------------


def test_t24_partitions_older_than_the_period_count_once(world: World) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, None))
    upload(world, "dt=2026-03-02/hour=7", "dt=x/hour=1")
    assert len(world.runs("s")) == 2
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    upload(world, "dt=2026-03-02/hour=7")
    assert (len(world.runs("s")), registered(world)) == (2, ["2026-03-02/7", "x/1"])
    named = [{"dt": "2026-03-02", "hour": "07"}, {"dt": "x", "hour": "1"}]
    world.finish()
    assert preview(world, "s", partitions={"values": named})["first"] == [
        {"dt": "2026-03-02", "hour": "7"},
        {"dt": "x", "hour": "1"},
    ]
    actions.run_now(world.ports, full("s"), {}, "r1", None, named[0])
    world.settle()
    [run] = [each for each in world.runs("s") if each.kind == "run_now"]
    [event] = [each for each in world.context(run)["events"] if each["kind"] == "partition"]
    assert (event["partition"]["hour"], event["period"]["label"]) == ("7", "2026-03-02T07")


def test_t24_a_new_format_keeps_what_is_registered(world: World) -> None:
    app = clicks({"s": on(partition("clicks"), by=BY)}, HOURS)
    world.deploy(app)
    upload(world, "dt=2026-03-02/hour=07")
    world.deploy(clicks({"s": app["schedules"]["s"]}, HOURS | {"format": "dt=%Y-%m-%d/hour=%-H"}))
    upload(world, "dt=2026-03-02/hour=07", "dt=2026-03-02/hour=08")
    assert len(world.runs("s")) == 2
    assert registered(world) == ["2026-03-02/07", "2026-03-02/8"]


def test_t24_a_zone_that_is_gone_leaves_no_period(world: World, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    use(monkeypatch, made(tmp_path, "without", {}))
    assert zones.zone("Europe/Paris") is None
    upload(world, "dt=2026-03-02/hour=07")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert ("period" in event, event["partition"]["hour"]) == (False, "07")


def test_t24_new_rules_of_a_zone_move_the_periods(world: World, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(clicks({"s": on(partition("clicks"), by=BY)}, HOURS))
    use(monkeypatch, made(tmp_path, "always", {"Europe/Paris": hours(2)}))
    upload(world, "dt=2026-03-02/hour=07")
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert iso(event["period"]["start"]) == "2026-03-02T05:00:00.000Z"
