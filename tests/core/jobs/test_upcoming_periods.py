"""The periods of a schedule that are not over: how many partitions each needs, and when all can be there (T25)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import iso, parse_instant
from chalicelib.core.jobs.of_period import upcoming

PARIS = "Europe/Paris"
NOW = parse_instant("2026-03-28T12:00:00Z")
HOURS = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H"}


def plan(of: Any = "period", **fields: Any) -> Schedule:
    trigger = {"type": "partition", "dataset": "demo.clicks", "of": of}
    document = {"workflow": "demo.a.w", "zone": PARIS, "per": "day", "trigger": trigger} | fields
    return Schedule.model_validate(document)


def clicks(**fields: Any) -> dict[str, Dataset]:
    document = {"bucket": "lake", "prefix": "clicks/", "keys": ["dt", "hour"], "period": HOURS} | fields
    return {"demo.clicks": Dataset.model_validate(document)}


def test_t25_each_local_day_needs_the_hours_that_it_has() -> None:
    found = upcoming(plan(), clicks(), NOW, 3)
    assert [(each.period.label, each.need) for each in found] == [
        ("2026-03-28", 24),
        ("2026-03-29", 23),
        ("2026-03-30", 24),
    ]
    assert [iso(each.complete_from) for each in found[:2]] == ["2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"]


def test_t25_a_window_before_a_day_can_be_complete_at_once() -> None:
    [each] = upcoming(plan({"periods": 2, "ending": "before"}), clicks(), NOW, 1)
    assert (each.need, iso(each.complete_from)) == (2, iso(each.period.start))


def test_t25_each_value_of_a_key_in_by_needs_the_same() -> None:
    regions = {"keys": ["region", "dt", "hour"]}
    assert upcoming(plan(by=["region"]), clicks(**regions), NOW, 1)[0].need == 24
    assert upcoming(plan(), clicks(**regions, values={"region": ["eu", "us"]}), NOW, 1)[0].need == 48


def test_t25_values_of_the_day_before_are_not_known_ahead() -> None:
    grows = clicks(keys=["region", "dt", "hour"], values={"region": "seen_last"})
    [each] = upcoming(plan(incomplete={"after": "6h"}), grows, NOW, 1)
    assert (each.need, each.period.label) == (None, "2026-03-28")


def test_t25_without_a_dataset_the_need_is_not_known() -> None:
    [each] = upcoming(plan(), {}, NOW, 1)
    assert (each.need, each.complete_from) == (None, each.period.end)


def test_t25_a_day_that_the_zone_skips_is_no_period() -> None:
    """Samoa went over the date line at the end of 29 December 2011."""
    apia = clicks(period=HOURS | {"zone": "UTC"})
    found = upcoming(plan(zone="Pacific/Apia"), apia, parse_instant("2011-12-29T12:00:00Z"), 2)
    assert [each.period.label for each in found] == ["2011-12-29", "2011-12-31"]


def test_t25_a_schedule_without_periods_has_none() -> None:
    alone = plan(per=None, trigger={"type": "partition", "dataset": "demo.clicks"})
    assert upcoming(alone, clicks(), NOW, 5) == []
