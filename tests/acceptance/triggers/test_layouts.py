"""Layouts of folders as other tools write them: padded, hyphenated, underscored and escaped (T7)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Put
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.ingest.objects import register_values
from chalicelib.flow.schedules import actions
from tests.acceptance.words import all_of, on, partition, size, why_schedule
from tests.support.backfills import begin, living, preview
from tests.support.world import World, flights, full

AWS_LOGS = ["aws-account-id", "aws-service", "aws_region", "_hour"]
TRAIL = "raw/trail/aws-account-id=000123456789/aws-service=s3/aws_region=us-east-1/_hour=07/"


def app_of(schedules: dict[str, Any], **keys: list[str]) -> dict[str, Any]:
    """An app with these datasets, each with its keys."""
    datasets = {name: {"bucket": "lake", "prefix": f"raw/{name}/", "keys": each} for name, each in keys.items()}
    return flights(schedules) | {"datasets": datasets}


def test_t7_t19_hyphened_keys_reach_runs_and_backfills(world: World) -> None:
    world.deploy(app_of({"s": on(partition("trail"), by=["aws-account-id", "_hour"])}, trail=AWS_LOGS))
    world.upload(f"{TRAIL}part-0.json.gz")
    world.settle()
    [run] = world.runs("s")
    assert run.correlation == {"aws-account-id": "000123456789", "_hour": "07"}
    [event] = world.context(run)["events"]
    assert (event["partition"]["aws-service"], event["path"]) == ("s3", f"s3://lake-bucket/{TRAIL}")
    world.finish()

    begin(world, "s", partitions={"from": {"aws-account-id": "123456789"}})
    world.settle()
    assert living(world, "s") == ["000123456789/s3/us-east-1/07"]


HOURS = ["day", "at"]


def test_t7_t19_escaped_values_join_plain_ones(world: World) -> None:
    both = all_of(partition("spark"), partition("plain"))
    world.deploy(app_of({"join": on(both, "join", by=["at"])}, spark=HOURS, plain=HOURS))
    world.upload("raw/spark/day=05/at=2026-03-01 07%3A00%3A00/part-0.parquet")
    world.settle()
    assert world.runs("join") == []
    world.upload("raw/plain/day=5/at=2026-03-01 07:00:00/part-0.parquet")
    world.settle()
    [run] = world.runs("join")
    assert run.correlation == {"at": "2026-03-01 07:00:00"}
    assert [event["path"] for event in world.context(run)["events"]] == [
        "s3://lake-bucket/raw/plain/day=5/at=2026-03-01 07:00:00/",
        "s3://lake-bucket/raw/spark/day=05/at=2026-03-01 07%3A00%3A00/",
    ]


def test_t7_an_escaped_partition_counts_once(world: World) -> None:
    world.deploy(app_of({"s": on(partition("hours"))}, hours=["at"]))
    for folder in ("at=07%3A00", "at=07%3a00", "at=07:00", "at=07%3A00"):
        world.upload(f"raw/hours/{folder}/part-0.parquet")
        world.settle()
    [run] = world.runs("s")
    [event] = world.context(run)["events"]
    assert (event["partition"], event["path"]) == ({"at": "07:00"}, "s3://lake-bucket/raw/hours/at=07%3A00/")


@pytest.mark.parametrize("text", ["07:00", "07%3A00"])
def test_t7_l12_requests_name_escaped_partitions_either_way(world: World, text: str) -> None:
    world.deploy(app_of({}, hours=["at"]))
    world.upload("raw/hours/at=07%3A00/part-0.parquet")
    world.deploy(app_of({"s": on(partition("hours"), by=["at"])}, hours=["at"]))
    begin(world, "s", partitions={"values": [{"at": text}]})
    world.settle()
    [run] = world.runs("s")
    assert (run.correlation, path_of(world, run)) == ({"at": "07:00"}, "s3://lake-bucket/raw/hours/at=07%3A00/")
    actions.run_now(world.ports, full("s"), {}, "r2", None, {"at": text})
    world.settle()
    assert [run.correlation for run in world.runs("s")] == [{"at": "07:00"}] * 2


def test_l12_an_unregistered_partition_has_the_folder_as_written(world: World) -> None:
    world.deploy(app_of({"s": on(partition("hours"), by=["at"])}, hours=["at"]))
    begin(world, "s", partitions={"values": [{"at": "07%3A00"}]})
    world.settle()
    [run] = world.runs("s")
    assert (run.correlation, path_of(world, run)) == ({"at": "07:00"}, "s3://lake-bucket/raw/hours/at=07%3A00/")


# -- leading zeros -----------------------------------------------------------------------------------------------------

DAYS = ["month", "day"]
DAY = "s3://lake-bucket/raw/days/month=01/day=05/"


@pytest.fixture
def padded(world: World) -> World:
    """A dataset with the registered partition ``month=01/day=05``, and the schedule ``s`` on it by day."""
    world.deploy(app_of({}, days=DAYS))
    world.upload("raw/days/month=01/day=05/part-0.parquet")
    world.deploy(app_of({"s": on(partition("days"), by=DAYS)}, days=DAYS))
    return world


def test_l12_a_backfill_by_numbers_runs_the_registered_partition(padded: World) -> None:
    assert preview(padded, "s", partitions={"values": [{"month": 1, "day": 5}]})["first"] == [
        {"month": "01", "day": "05"}
    ]
    begin(padded, "s", partitions={"values": [{"month": 1, "day": 5}, {"month": "01", "day": "05"}]})
    padded.settle()
    [run] = padded.runs("s")
    assert (run.correlation, path_of(padded, run)) == ({"month": "01", "day": "05"}, DAY)


def test_l21_a_reprocessing_by_numbers_runs_what_is_registered(padded: World) -> None:
    asked = Reprocess.model_validate({"dataset": "days", "partition": {"month": 1, "day": 5}})
    plan = reprocess.preview(padded.ports, "demo", asked)
    assert (plan.entries, [step.why for step in plan.steps]) == (("01/05",), ["counts partitions of demo.days"])
    reprocess.begin(padded.ports, "demo", asked, "tester", "r1")
    padded.settle()
    [run] = padded.runs("s")
    assert (run.correlation, path_of(padded, run)) == ({"month": "01", "day": "05"}, DAY)


def test_l11_a_run_now_by_numbers_gets_the_registered_partition(padded: World) -> None:
    actions.run_now(padded.ports, full("s"), {}, "r1", None, {"month": "1", "day": "5"})
    padded.settle()
    [run] = padded.runs("s")
    assert run.correlation == {"month": "01", "day": "05"}
    assert [event["path"] for event in padded.context(run)["events"][1:]] == [DAY]


@pytest.mark.parametrize("partition", [{"month": 1, "day": 6}, {"month": "001", "day": "06"}])
def test_l12_a_folder_that_no_object_can_be_in_is_refused(padded: World, partition: dict[str, Any]) -> None:
    with pytest.raises(SluiceError, match="in the folders of demo.days: month=01") as failure:
        preview(padded, "s", partitions={"values": [{"month": "01", "day": "07"}, partition]})
    assert failure.value.field == "partitions.values.1"
    asked = Reprocess.model_validate({"dataset": "days", "partition": partition})
    with pytest.raises(SluiceError, match="in the folders of demo.days: month=01"):
        reprocess.preview(padded.ports, "demo", asked)
    texts = {key: str(value) for key, value in partition.items()}
    with pytest.raises(SluiceError, match="in the folders of demo.days: month=01"):
        actions.run_now(padded.ports, full("s"), {}, "r1", None, texts)


def test_l12_of_two_folders_of_one_number_both_are_named(padded: World) -> None:
    padded.upload("raw/days/month=1/day=5/part-0.parquet")
    padded.settle()
    padded.finish()
    with pytest.raises(SluiceError, match="month=01/day=05 or month=1/day=5, got 'month=001/day=5'"):
        preview(padded, "s", partitions={"values": [{"month": "001", "day": 5}]})
    exact = preview(padded, "s", partitions={"values": [{"month": 1, "day": 5}]})
    assert exact["first"] == [{"month": "1", "day": "5"}]


def test_l12_a_month_that_no_calendar_has_is_no_range(padded: World) -> None:
    with pytest.raises(SluiceError, match="expected a range with a partition of demo.days, got 'a range without one'"):
        preview(padded, "s", partitions={"from": {"month": 13}, "to": {"month": 14}})


def test_t7_a_registration_under_another_spelling_is_refused(padded: World) -> None:
    stored = padded.ports.rows.get(Definition, "dataset", "demo.days")
    assert stored is not None
    dataset = Dataset.model_validate(stored.document)
    with pytest.raises(SluiceError, match="month=01/day=05, got 'month=1/day=5'"):
        register_values(padded.ports, "demo.days", dataset, {"partition": {"month": 1, "day": 5}})
    assert register_values(padded.ports, "demo.days", dataset, {"partition": {"month": "1", "day": "6"}}).values


def path_of(world: World, run: Run) -> str | None:
    [event] = world.context(run)["events"]
    found: str | None = event["path"]
    return found


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_t7_why_says_what_came_and_is_in_no_partition(world: World) -> None:
    app = app_of({"s": on(partition("days"))}, days=DAYS)
    app["datasets"]["days"]["ready"] = {"done_flag": "_SUCCESS"}
    world.deploy(app)
    world.upload("raw/days/_SUCCESS")
    came = "raw/days/_SUCCESS came to demo.days at 2026-03-02T12:00:00.000Z and belongs to no partition: "
    assert f"{came}its path has no folders month=.../day=..." in why_schedule(world, "s")["why"]
    world.upload("raw/days/month=01/day=05/_SUCCESS")
    world.settle()
    assert len(world.runs("s")) == 1
    world.clock.pass_by("8d")
    assert "belongs to no partition" not in why_schedule(world, "s")["why"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "month=01/",
        "month=01_$folder$",
        "_temporary/0/part-0",
        "_SUCCESS",
        ".hive-staging/x",
        "month=01/_committed_1",
    ],
)
def test_t7_bookkeeping_beside_partitions_is_not_told(world: World, name: str) -> None:
    world.deploy(app_of({}, days=DAYS))
    world.upload(f"raw/days/{name}")
    assert world.ports.rows.get(IgnoredObjects, "demo.days") is None


@pytest.mark.parametrize(
    "name", ["part-0.parquet", "01/05/part-0", "month=01/part-0", "day=05/month=01/x", "month=/day=1/x"]
)
def test_t7_data_in_no_partition_is_told(world: World, name: str) -> None:
    world.deploy(app_of({}, days=DAYS))
    world.upload(f"raw/days/{name}", size=5)
    row = world.ports.rows.get(IgnoredObjects, "demo.days")
    assert row is not None
    assert [(each["key"], each["why"]) for each in row.objects] == [
        (f"raw/days/{name}", "its path has no folders month=.../day=...")
    ]


def test_t7_a_value_that_is_no_value_is_told_and_refused(world: World) -> None:
    world.deploy(app_of({"s": on(partition("days"))}, days=DAYS))
    with pytest.raises(SluiceError):
        world.upload("raw/days/month=*/day=05/part-0")
    assert "month=*/day=05/part-0 came to demo.days at" in why_schedule(world, "s")["why"]
    assert "a value without * ? { } [ ]" in why_schedule(world, "s")["why"]


def test_t7_an_object_joins_those_that_an_earlier_version_noted(world: World) -> None:
    world.deploy(app_of({}, days=DAYS))
    old = {"key": "raw/days/x", "at": "2026-03-02T11:00:00.000Z", "why": "its path has no folders month=.../day=..."}
    world.ports.ledger.commit([Put(IgnoredObjects("demo.days", (old,), 0))])
    world.upload("raw/days/part-0", size=5)
    row = world.ports.rows.get(IgnoredObjects, "demo.days")
    assert row is not None
    assert [each["key"] for each in row.objects] == ["raw/days/part-0", "raw/days/x"]


def test_t7_a_flood_of_ignored_objects_is_a_write_a_minute(world: World) -> None:
    world.deploy(app_of({}, days=DAYS))
    written = []
    for number in range(300):
        before = world.ports.rows.get(IgnoredObjects, "demo.days")
        world.upload(f"raw/days/part-{number}", size=5)
        world.clock.pass_by("1s")
        if world.ports.rows.get(IgnoredObjects, "demo.days") != before:
            written.append(number)
    assert written == [0, 60, 120, 180, 240]


def test_t19_why_names_days_that_differ_in_leading_zeros(world: World) -> None:
    both = all_of(partition("a"), partition("b"))
    world.deploy(app_of({"join": on(both, "join", by=["day"])}, a=["day"], b=["day"]))
    for folder in ("a/day=06", "a/day=05", "b/day=5"):
        world.upload(f"raw/{folder}/part-0")
    world.settle()
    assert world.runs("join") == []
    assert "day=05 and day=5 do not join, because by compares texts" in why_schedule(world, "join")["why"]


def test_t9_an_object_in_no_partition_counts_for_its_size(world: World) -> None:
    world.deploy(app_of({"s": on(size("1 MB", "days"))}, days=DAYS))
    world.upload("raw/days/part-0.parquet", size=5)
    assert "belongs to no partition" not in why_schedule(world, "s")["why"]
