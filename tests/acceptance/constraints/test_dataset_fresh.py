"""A job waits until a partition of a dataset is recent enough (C18)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import DAY, HOUR, SECOND
from chalicelib.flow.fires import calendars
from chalicelib.flow.ingest import objects
from tests.acceptance.words import Document, day, doze, event, on, reasons, started_at, time, why
from tests.support.backfills import begin
from tests.support.clock import NOON
from tests.support.world import EMR, World, flights

DAY_1 = {"year": "2013", "month": "01", "day": "1"}
RULE = "a partition of demo.weather came within 6h, else wait"


def dataset_fresh(dataset: str = "weather", within: str = "6h", on_unmet: str = "wait") -> Document:
    return {"type": "dataset_fresh", "dataset": dataset, "within": within, "on_unmet": on_unmet}


def deploy(world: World, *constraints: Document, **fields: Any) -> None:
    world.deploy(flights({"daily": on(event("go"), "clean", *(constraints or [dataset_fresh()]), **fields)}))


def go(world: World) -> None:
    world.post("go")
    world.settle()


def comes(world: World, key: str, at: int | None = None) -> None:
    """An object of the lake arrives, which S3 has stored at an instant."""
    objects.match_object(world.ports, ObjectCreated("lake-bucket", key, at if at is not None else world.clock.now()))
    world.settle()


def test_c18_a_job_waits_for_a_partition_without_being_polled(world: World) -> None:
    deploy(world)
    go(world)
    waits = why(world, "daily")
    assert waits["why"].startswith(f"{RULE}: none has come yet")
    assert waits["wakes"].startswith("a partition of demo.weather, or its timeout at ")
    [before] = world.jobs("daily")
    doze(world, "5h")
    assert world.jobs("daily") == [before]

    comes(world, day(1, "weather", "a.csv"))
    assert started_at(world, "daily") == ["2026-03-02T17:00:00.000Z"]


def test_c18_why_says_which_partition_is_the_newest_and_its_age(world: World) -> None:
    deploy(world)
    comes(world, day(1, "weather", "a.csv"))
    doze(world, "6h1m")
    go(world)
    newest = "the newest, year=2013/month=01/day=1, came at 2026-03-02T12:00:00.000Z"
    assert why(world, "daily")["why"].startswith(f"{RULE}: {newest} and was fresh until 2026-03-02T18:00:00.000Z")
    [condition] = why(world, "daily")["constraints"]
    assert (condition["met"], condition["until"]) == (False, None)


def test_c18_the_age_counts_from_the_arrival_in_s3(world: World) -> None:
    """Sluice may see an object late, or find it in a listing: that does not make it younger."""
    deploy(world)
    doze(world, "10h")
    comes(world, day(1, "weather", "a.csv"), NOON)
    go(world)
    assert started_at(world, "daily") == []
    comes(world, day(2, "weather", "a.csv"), world.clock.now() - 5 * HOUR)
    assert len(world.runs("daily")) == 1


def test_c18_an_older_partition_that_comes_later_is_the_newest(world: World) -> None:
    """The days that the folders name do not matter, nor the order in which events are delivered."""
    deploy(world)
    doze(world, "12h")
    comes(world, day(9, "weather", "a.csv"))
    comes(world, day(1, "weather", "a.csv"), NOON)
    go(world)
    assert len(world.runs("daily")) == 1, "the notification of an object of noon does not make the dataset older"
    world.finish()
    doze(world, "7h")
    comes(world, day(2, "weather", "a.csv"))
    go(world)
    assert len(world.runs("daily")) == 2


def test_c18_a_clock_that_is_ahead_keeps_nothing_fresh_longer(world: World) -> None:
    deploy(world)
    comes(world, day(1, "weather", "a.csv"), NOON + DAY)
    go(world)
    assert len(world.runs("daily")) == 1
    world.finish()
    doze(world, "6h1s")
    go(world)
    assert len(world.runs("daily")) == 1
    comes(world, day(2, "weather", "a.csv"), world.clock.now() - SECOND)
    assert len(world.runs("daily")) == 2


@pytest.mark.parametrize("rewritten", ["again", "ignore"])
def test_c18_a_partition_written_again_counts_as_for_triggers(world: World, rewritten: str) -> None:
    document = flights({"daily": on(event("go"), "clean", dataset_fresh("flights"))})
    document["datasets"]["flights"]["rewritten"] = rewritten
    world.deploy(document)
    comes(world, day(1))
    doze(world, "7h")
    go(world)
    comes(world, day(1))
    assert len(world.runs("daily")) == (1 if rewritten == "again" else 0)


def test_c18_further_objects_of_a_partition_do_not_make_it_newer(world: World) -> None:
    deploy(world)
    comes(world, day(1, "weather", "a.csv"))
    doze(world, "7h")
    go(world)
    comes(world, day(1, "weather", "b.csv"))
    assert world.runs("daily") == []


def test_c18_a_partition_that_a_request_registers_counts(world: World) -> None:
    deploy(world)
    go(world)
    dataset = world.ports.catalog.dataset_of("lake-bucket", day(1, "weather", "a.csv"))
    assert dataset is not None
    objects.register_values(world.ports, *dataset, {"partition": {"year": "2013", "month": "09", "day": "1"}})
    world.settle()
    assert len(world.runs("daily")) == 1
    doze(world, "7h")
    go(world)
    assert "the newest, year=2013/month=09/day=1, came at" in why(world, "daily")["why"]


def test_c18_an_unmet_one_may_abort_on_record(world: World) -> None:
    deploy(world, dataset_fresh(on_unmet="abort"))
    go(world)
    assert reasons(world, "daily") == [f"ABORTED: {RULE.replace('else wait', 'else abort')}: none has come yet"]


def test_c18_a_fire_waits_for_the_partition_of_its_day(world: World) -> None:
    world.deploy(flights({"daily": on(time("0 6 * * *"), "clean", dataset_fresh())}))
    comes(world, day(1, "weather", "a.csv"))
    doze(world, "20h")
    assert world.runs("daily") == []
    comes(world, day(2, "weather", "a.csv"))
    assert started_at(world, "daily") == ["2026-03-03T08:00:00.000Z"]


def test_c10_a_timeout_that_runs_overrides_a_stale_dataset(world: World) -> None:
    deploy(world, timeout={"after": "1h", "then": "run"})
    go(world)
    doze(world, "1h")
    [run] = world.runs("daily")
    assert run.fired_by.text.startswith(f"run in spite of its timeout: {RULE}")


def test_c18_a_backfill_is_not_held_by_a_stale_dataset(world: World) -> None:
    partition = {"type": "partition", "dataset": "flights"}
    world.deploy(flights({"daily": on(partition, "clean", dataset_fresh())}))
    comes(world, day(1))
    assert world.runs("daily") == []
    begin(world, "daily", partitions={"from": DAY_1, "to": DAY_1})
    world.settle()
    assert [run.backfill is not None for run in world.runs("daily")] == [True]


def test_c18_a_dataset_that_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(SluiceError) as raised:
        deploy(world, dataset_fresh("wether"))
    error = raised.value
    assert (error.code, error.field) == ("unknown_reference", "schedules.daily.constraints.0.dataset")


def shared(*datasets: str) -> World:
    """Two namespaces that enforce rights: ``lake`` owns the dataset ``landed``, and lets ``demo`` use ``datasets``."""
    world = World(authorization="enforce")
    landed = {"bucket": "lake", "prefix": "landed/", "keys": ["day"]}
    world.deploy({"datasets": {"landed": landed}, "workflows": {"clean": {"target": EMR}}}, "lake", "core")
    allow(world, *datasets)
    return world


def allow(world: World, *datasets: str) -> None:
    world.grant("lake", {"grants": [{"to": "demo", "datasets": list(datasets)}] if datasets else []})
    world.settle()


def test_c18_a_dataset_of_another_namespace_needs_its_grant() -> None:
    world = shared()
    with pytest.raises(SluiceError) as raised:
        deploy(world, dataset_fresh("lake.landed"))
    assert raised.value.code == "unknown_reference"
    allow(world, "landed")
    deploy(world, dataset_fresh("lake.landed"))
    go(world)
    comes(world, "landed/day=1/a.csv")
    assert len(world.runs("daily")) == 1


def test_c18_a_grant_that_is_withdrawn_holds_the_job_and_says_so() -> None:
    world = shared("landed")
    deploy(world, dataset_fresh("lake.landed"))
    go(world)
    allow(world)
    comes(world, "landed/day=1/a.csv")
    [job] = world.jobs("daily")
    assert job.reason.text.startswith("waits for a grant of lake to use dataset lake.landed ")
    assert world.runs("daily") == []
    allow(world, "landed")
    assert len(world.runs("daily")) == 1


DEFAULT = {"type": "dataset_fresh", "dataset": "weather", "on_unmet": "wait"}


def with_fresh(span: str | None) -> Document:
    document = flights({"daily": on(event("go"), "clean", DEFAULT)})
    document["datasets"]["weather"] |= {"fresh": span} if span else {}
    return document


def test_c18_the_default_is_the_span_of_the_dataset(world: World) -> None:
    world.deploy(with_fresh("2h"))
    comes(world, day(1, "weather", "a.csv"))
    doze(world, "2h1m")
    go(world)
    assert "a partition of demo.weather came within the span fresh of the dataset" in why(world, "daily")["why"]
    assert "was fresh until 2026-03-02T14:00:00.000Z" in why(world, "daily")["why"]
    weather = with_fresh("3h")["datasets"]["weather"]
    calendars.put_dataset(world.ports, "demo.weather", weather, "tester")
    world.settle()
    assert len(started_at(world, "daily")) == 1


def test_c18_a_dataset_that_loses_its_span_is_not_fresh(world: World) -> None:
    world.deploy(with_fresh("2h"))
    comes(world, day(1, "weather", "a.csv"))
    calendars.put_dataset(world.ports, "demo.weather", with_fresh(None)["datasets"]["weather"], "tester")
    go(world)
    assert "the dataset no longer says how long it is fresh" in why(world, "daily")["why"]


def test_c18_without_any_span_it_is_refused(world: World) -> None:
    with pytest.raises(SluiceError) as refused:
        world.deploy(with_fresh(None))
    assert (refused.value.field, "26h" in str(refused.value.hint)) == ("schedules.daily.constraints.0.within", True)
