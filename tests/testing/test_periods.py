"""Periods under test: the partitions of a day, days that stay incomplete, and parts that come late."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.testing import ApiRefused, App

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
AT = "2026-03-28T20:00Z"


def document(**schedule: Any) -> dict[str, Any]:
    hours = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H"}
    clicks = {"bucket": "lake", "prefix": "raw/", "keys": ["region", "dt", "hour"], "period": hours}
    trigger = {"type": "partition", "dataset": "clicks", "of": "period"}
    daily = {"workflow": "summarize", "enabled": True, "zone": "Europe/Paris", "per": "day", "trigger": trigger}
    return {
        "namespace": "shop",
        "app": "web",
        "datasets": {"clicks": clicks | {"values": {"region": ["eu", "us"]}}},
        "workflows": {"summarize": {"target": EMR}},
        "schedules": {"summarize": daily | schedule},
    }


def test_a_day_with_23_hours_is_complete_with_its_46_parts(sluice_app: type[App]) -> None:
    app = sluice_app(document(), at=AT)
    *parts, last = app.parts("summarize", day="2026-03-29")
    assert len(parts) == 45
    for part in parts:
        app.partition(*part)
    assert last == ("shop.clicks", {"region": "us", "dt": "2026-03-29", "hour": "21"})
    assert "waits for 1 of 46 partitions of 2026-03-29 Europe/Paris" in app.why("summarize", day="2026-03-29")
    app.partition(*last)
    assert len(app.run("summarize", day="2026-03-29").partitions) == 46


def test_an_incomplete_day_starts_after_its_time(sluice_app: type[App]) -> None:
    app = sluice_app(document(incomplete={"allow": 1, "after": "6h"}, late="again"), at=AT)
    *parts, last = app.parts("summarize", day="2026-03-29")
    for part in parts:
        app.partition(*part)
    app.advance_to("2026-03-29T22:59Z")
    assert app.runs("summarize") == []
    app.advance("2m")
    assert app.run("summarize").context["missing"] == [{"dataset": "shop.clicks", "partition": last[1]}]
    app.run("summarize").succeed()
    app.partition(*last)
    _, again = app.runs("summarize", day="2026-03-29")
    assert "missing" not in again.context


def test_a_late_part_is_on_record(sluice_app: type[App]) -> None:
    app = sluice_app(document(incomplete={"after": "1h"}), at=AT)
    first, *_, last = app.parts("summarize", day="2026-03-29")
    app.partition(*first)
    app.advance_to("2026-03-29T23:01Z")
    app.run("summarize").succeed()
    app.partition(*last)
    assert len(app.runs("summarize")) == 1
    [record] = app.records("summarize")
    assert record.kind == "DROPPED"


def test_parts_are_those_of_a_schedule_with_per(sluice_app: type[App]) -> None:
    app = sluice_app(document(), at=AT)
    for values in ({}, {"day": "29 March"}, {"hour": "2026-03-29T01"}):
        with pytest.raises(ApiRefused, match="expected a schedule with per, and values of day"):
            app.parts("summarize", **values)


def test_a_key_that_no_partition_has_is_refused(sluice_app: type[App]) -> None:
    app = sluice_app(document(), at=AT)
    for ask in (app.runs, app.jobs, app.run, app.why):
        with pytest.raises(ApiRefused) as refused:
            ask("summarize", dya="2026-03-29")
        assert refused.value.hint == "did you mean 'day'? Known: day, dt, hour, region"
    assert app.runs("summarize", day="2026-03-29") == app.runs("summarize", region="eu") == []


def test_an_unknown_dataset_is_named_with_those_that_exist(sluice_app: type[App]) -> None:
    app = sluice_app(document(), at=AT)
    for act in (lambda: app.partition("clikcs", dt=1), lambda: app.object("clikcs", "a.csv")):
        with pytest.raises(ApiRefused) as refused:
            act()
        assert refused.value.hint == "did you mean 'shop.clicks'? Known: shop.clicks"
