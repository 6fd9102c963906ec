"""The periods of a schedule, and what became of each (L23)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, Instant, iso, parse_instant
from chalicelib.flow.backfills import periods as read_periods
from chalicelib.flow.views import periods
from tests.acceptance.words import concurrency, on, partition
from tests.acceptance.words import time as at
from tests.support.backfills import begin
from tests.support.world import World, flights, full

DAYS = {"each": "day", "format": "day=%Y-%m-%d", "zone": "Europe/Paris"}
HOURS = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": "Europe/Paris"}


def sales(world: World, period: dict[str, Any], keys: list[str], **fields: Any) -> None:
    """A schedule over a dataset with periods; noon of the tests is Monday, 2 March 2026."""
    dataset = {"bucket": "lake", "prefix": "raw/sales/", "keys": keys, "period": period}
    made = on(partition("sales"), "clean", concurrency(1), by=keys, **fields)
    world.deploy(flights({"load": made}) | {"datasets": {"sales": dataset}})


def comes(world: World, folder: str, state: str | None = None) -> None:
    world.upload(f"raw/sales/{folder}/part-0", size=1)
    world.settle()
    if state is not None:
        world.finish(state)
        world.settle()


def read(world: World, name: str = "load", since: Instant | None = None, limit: int = 500) -> list[Any]:
    """All items of the list, page by page."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page, _ = periods.page(world.ports, full(name), since, world.clock.now(), limit, cursor)
        assert len(page.items) <= limit
        found += page.items
        if page.cursor is None:
            return found
        assert page.cursor != cursor
        cursor = page.cursor


def states(items: list[Any]) -> dict[str, str]:
    return {"/".join((each["values"] or {"at": each["at"][:10]}).values()): each["state"] for each in items}


def test_l23_each_day_since_the_first_partition_has_a_state(world: World) -> None:
    sales(world, DAYS, ["day"])
    for day, state in (("24", "SUCCESS"), ("26", "FAILED")):
        comes(world, f"day=2026-02-{day}", state)
    comes(world, "day=2026-02-27")
    comes(world, "day=2026-02-28")
    items = read(world)
    assert states(items) == {
        "2026-02-24": "succeeded",
        "2026-02-25": "missing",
        "2026-02-26": "failed",
        "2026-02-27": "running",
        "2026-02-28": "waiting",
        "2026-03-01": "missing",
    }
    succeeded, missing, failed, running, waiting, _ = items
    [run] = [each for each in world.runs("load") if each.state == "SUCCEEDED"]
    assert (succeeded["runs"], succeeded["attempts"], succeeded["revision"]) == ([run.run_id], 1, 1)
    assert succeeded["period"]["label"] == "2026-02-24"
    assert succeeded["at"] == succeeded["period"]["start"] == "2026-02-23T23:00:00.000Z"
    assert succeeded["since"] == iso(run.ended_at or 0)
    assert (missing["runs"], missing["ready_at"], missing["since"]) == ([], None, None)
    assert (failed["ready_at"], failed["code"]) == (iso(world.clock.now()), "target_failed_unclear")
    assert (waiting["code"], waiting["job_id"]) == ("limit", world.jobs("load")[0].job_id)
    assert running["since"] == iso(world.clock.now())


def test_l23_a_day_that_is_not_over_is_shown_if_it_has_work(world: World) -> None:
    sales(world, DAYS, ["day"])
    comes(world, "day=2026-02-28", "SUCCESS")
    assert list(states(read(world))) == ["2026-02-28", "2026-03-01"]
    comes(world, "day=2026-03-02", "SUCCESS")
    assert states(read(world))["2026-03-02"] == "succeeded"


def test_l23_a_run_again_is_the_next_revision_of_a_day(world: World) -> None:
    sales(world, DAYS, ["day"])
    comes(world, "day=2026-03-01", "FAILED")
    world.clock.pass_by("1m")
    begin(world, "load", partitions={}, only="failed")
    world.settle()
    world.finish()
    world.settle()
    [item] = read(world)
    assert (item["state"], item["revision"], len(set(item["runs"]))) == ("succeeded", 2, 2)
    assert item["runs"][0] == world.runs("load")[-1].run_id


@pytest.mark.parametrize("limit", [1, 2, 5, 500])
def test_l23_each_region_is_expected_in_each_day(world: World, limit: int) -> None:
    sales(world, DAYS, ["region", "day"])
    for folder in ("region=us/day=2026-02-27", "region=eu/day=2026-02-28", "region=us/day=2026-03-01"):
        comes(world, folder, "SUCCESS")
    assert states(read(world, limit=limit)) == {
        "eu/2026-02-27": "missing",
        "us/2026-02-27": "succeeded",
        "eu/2026-02-28": "succeeded",
        "us/2026-02-28": "missing",
        "eu/2026-03-01": "missing",
        "us/2026-03-01": "succeeded",
    }


def test_l23_the_hours_of_a_day_are_those_that_it_has(world: World) -> None:
    sales(world, HOURS, ["dt", "hour"])
    comes(world, "dt=2026-03-02/hour=07")
    world.clock.pass_by("30d")
    since = parse_instant("2026-03-28T23:00:00Z")
    hours = [each for each in read(world, since=since) if each["values"]["dt"] == "2026-03-29"]
    assert len(hours) == 23
    assert "02" not in [each["values"]["hour"] for each in hours]


def test_l23_the_periods_of_a_time_trigger_are_its_fires(world: World) -> None:
    world.deploy(flights({"load": on(at("0 2 * * *"), "clean")}))
    begin(world, "load", from_="2026-02-27T00:00:00Z", to="2026-02-28T00:00:00Z")
    world.settle()
    world.finish("FAILED")
    world.settle()
    items = read(world)
    assert len(items) == 31
    assert states(items)["2026-02-27"] == "failed"
    assert {each["state"] for each in items if not each["at"].startswith("2026-02-27")} == {"missing"}
    assert [each["at"] for each in read(world, since=world.clock.now() - DAY)] == ["2026-03-02T02:00:00.000Z"]


def test_l23_a_schedule_without_periods_is_refused(world: World) -> None:
    world.deploy(flights({"load": on(partition(), "clean", by=["day"])}))
    with pytest.raises(SluiceError, match="by that names the period of a dataset"):
        read(world)


def test_l23_what_was_not_read_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sales(world, DAYS, ["day"])
    for day in ("26", "27", "28"):
        comes(world, f"day=2026-02-{day}", "SUCCESS")
        world.clock.pass_by("1m")
    complete = periods.page(world.ports, full("load"), None, world.clock.now(), 9, None)[1]
    assert complete < parse_instant("2026-02-26T00:00:00Z")
    monkeypatch.setattr(read_periods, "MAX_ATTEMPTS", 1)
    page, complete = periods.page(world.ports, full("load"), None, world.clock.now(), 9, None)
    assert [each["state"] for each in page.items] == ["missing", "succeeded", "succeeded", "missing"]
    assert complete > parse_instant("2026-03-02T12:00:00Z")


def test_l23_the_days_of_a_schedule_with_one_job_for_each(world: World) -> None:
    """The hours are those of UTC, the days those of Paris: they begin an hour before."""
    hourly = HOURS | {"zone": "UTC"}
    dataset = {"bucket": "lake", "prefix": "raw/sales/", "keys": ["dt", "hour"], "period": hourly}
    made = on({"type": "partition", "dataset": "sales", "of": "period"}, "clean", per="day", zone="Europe/Paris")
    world.deploy(flights({"load": made}) | {"datasets": {"sales": dataset}})
    for hour in range(23, 47):
        comes(world, f"dt=2026-02-{27 + hour // 24}/hour={hour % 24:02}")
    world.finish()
    comes(world, "dt=2026-03-01/hour=05")
    found = read(world)
    assert states(found) == {"2026-02-28": "succeeded", "2026-03-01": "waiting"}
    assert "waits for 23 of 24 hours" in found[1]["why"].text
    assert found[0]["period"] is not None and found[0]["period"]["zone"] == "Europe/Paris"
