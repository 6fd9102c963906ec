"""The parts of a period follow from the calendar (T25, T26): compared with clocks that are read minute by minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import periods
from chalicelib.core.instants import Instant, millis
from chalicelib.core.jobs import of_period
from chalicelib.core.jobs.gather import Joined
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import parts
from chalicelib.core.triggers.parts import MAX_VALUES

ZONES = [
    "America/New_York",
    "America/St_Johns",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Paris",
    "Pacific/Apia",
    "UTC",
]
HOURS = {"hour": 1, "2h": 2, "3h": 3, "6h": 6, "12h": 12}
Name = tuple[str, str]


def clock(zone: str, day: date) -> Iterator[tuple[Instant, datetime]]:
    """What the clocks of a zone show, minute by minute, from three days before a date to three days after it."""
    tz, first = ZoneInfo(zone), datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=3)
    for minute in range(6 * 24 * 60):
        at = first + timedelta(minutes=minute)
        yield millis(at), at.astimezone(tz)


def hours_of(zone: str, day: date, producer: str, length: int, offsets: bool) -> set[Name]:
    """The names of the hours of a producer that begin in a day: each begins when its clocks first show it."""
    days: dict[date, Instant] = {}
    for at, shown in clock(zone, day):
        days.setdefault(shown.date(), at)
    start = days[day]
    end = min(at for other, at in days.items() if other > day)
    hours: dict[Name, Instant] = {}
    for at, shown in clock(producer, day):
        name = f"{shown.hour // length * length:02}{shown:%z}" if offsets else f"{shown.hour // length * length:02}"
        hours.setdefault((f"{shown:%Y-%m-%d}", name), at)
    return {name for name, at in hours.items() if start <= at < end}


def exists(zone: str, day: date) -> bool:
    return any(shown.date() == day for _, shown in clock(zone, day))


def dataset(zone: str, each: str, offsets: bool, **fields: object) -> Dataset:
    period = {"each": each, "format": f"dt=%Y-%m-%d/hour=%H{'%z' if offsets else ''}", "zone": zone}
    document = {"bucket": "lake-bucket", "prefix": "a/", "keys": ["dt", "hour"], "period": period}
    return Dataset.model_validate(document | fields)


def schedule(zone: str, of: object = "period", per: str = "day") -> Schedule:
    trigger = {"type": "partition", "dataset": "demo.a", "of": of}
    return Schedule.model_validate({"workflow": "demo.x.w", "trigger": trigger, "per": per, "zone": zone})


def period_of(plan: Schedule, label: str) -> Period:
    period = plan.period_of({"day": label})
    assert period is not None
    return period


def parts_of(plan: Schedule, a: Dataset, period: Period) -> Parts:
    place = of_period.Place(period, period, {"day": period.label}, ("0",))
    return of_period.parts_by_leaf(plan, place, {"demo.a": a})["0"]


@settings(deadline=None, max_examples=12)
@given(
    zone=st.sampled_from(ZONES),
    producer=st.sampled_from([*ZONES, None]),
    day=st.dates(date(1995, 1, 1), date(2037, 12, 31)),
    each=st.sampled_from(list(HOURS)),
    offsets=st.booleans(),
)
@example(zone="Pacific/Apia", producer=None, day=date(2011, 12, 31), each="hour", offsets=False)
@example(zone="Pacific/Apia", producer="UTC", day=date(2011, 12, 29), each="hour", offsets=False)
@example(zone="Europe/Paris", producer=None, day=date(2026, 10, 25), each="3h", offsets=True)
@example(zone="Europe/Paris", producer="UTC", day=date(2026, 3, 29), each="hour", offsets=False)
@example(zone="America/St_Johns", producer=None, day=date(2008, 11, 2), each="hour", offsets=True)
@example(zone="Australia/Lord_Howe", producer=None, day=date(2026, 4, 5), each="2h", offsets=True)
def test_t25_a_day_has_the_hours_that_begin_in_it(
    zone: str, producer: str | None, day: date, each: str, offsets: bool
) -> None:
    own, plan = producer or zone, schedule(zone)
    a = dataset(own, each, offsets)
    if not exists(zone, day):
        assert plan.period_of({"day": f"{day}"}) is None
        return
    period = period_of(plan, f"{day}")
    found = parts_of(plan, a, period)
    every = list(parts.every(found))
    written = [parts.values_of(found, part) for part in every]
    assert {(each["dt"], each["hour"]) for each in written} == hours_of(zone, day, own, HOURS[each], offsets)
    assert found.need == len(every) == len({part.number for part in every})
    assert sorted(parts.missing(found, 100), key=lambda part: part.period.start) == every
    for number, part in enumerate(every):
        assert parts.number_of(found, part.period, parts.values_of(found, part)) == part.number
        [place] = of_period.places_of(plan, a, part.period, [Joined({})], ("0",))
        assert place.correlation == {"day": f"{day}"}
        grown = parts.having(found, part.number)
        assert (grown.count, len(parts.missing(grown, 100))) == (1, found.need - 1)
        assert [each.number for each in parts.came(grown)] == [part.number]
        if number == 0:
            assert a.period is not None
            names = a.period.names
            assert names is not None
            before = names.calendar.previous(part.period)
            assert parts.number_of(found, before, names.write(before)) is None
            assert parts.number_of(found, part.period, names.write(before)) is None, "other values"


@settings(deadline=None, max_examples=10)
@given(
    zone=st.sampled_from(ZONES),
    day=st.dates(date(2000, 1, 5), date(2037, 12, 1)),
    back=st.integers(0, 9),
    before=st.booleans(),
)
@example(zone="Pacific/Apia", day=date(2012, 1, 2), back=6, before=False)
@example(zone="Europe/Paris", day=date(2026, 4, 1), back=6, before=False)
def test_t26_a_part_is_in_each_window_that_has_it(zone: str, day: date, back: int, before: bool) -> None:
    end = "before" if before else "period"
    plan = schedule(zone, {"from": f"-{back}d", "to": end} if back else {"from": "period", "to": end})
    period = {"each": "day", "format": "dt=%Y-%m-%d", "zone": zone}
    a = dataset(zone, "hour", offsets=False, keys=["dt"], period=period)
    if not exists(zone, day):
        return
    part = period_of(plan, f"{day}")
    found = {place.period.label for place in of_period.places_of(plan, a, part, [Joined({})], ("0",))}
    around = [day + timedelta(days=number) for number in range(-2, back + 3)]
    expected = {
        f"{other}"
        for other in around
        if exists(zone, other) and other - timedelta(days=back) <= day < other + timedelta(days=not before)
    }
    assert found == expected


def test_t25_parts_are_stored_and_read_back() -> None:
    plan, a = schedule("Europe/Paris"), dataset("Europe/Paris", "hour", offsets=False)
    found = parts.having(parts_of(plan, a, period_of(plan, "2026-03-29")), 5)
    progress = Progress(1, 2, 3, 4, found)
    assert Progress.of(progress.numbers) == progress
    newer = Parts.of_text(found.text.replace('"have"', '"later":7,"have"'))
    assert newer.unknown == {"later": 7} and '"later":7' in newer.text
    assert Progress.of([1, 2, 3, 4, "", "later"]).numbers == [1, 2, 3, 4, "", "later"]


ARRIVALS = st.tuples(st.integers(0, 23), st.sampled_from("xy"), st.integers(0, 5), st.sampled_from("pqr"))


@settings(deadline=None, max_examples=30)
@given(seen=st.integers(0, 3), arrivals=st.lists(ARRIVALS, unique=True, max_size=40))
def test_t25_values_that_join_keep_what_has_come(seen: int, arrivals: list[tuple[int, str, int, str]]) -> None:
    lists = {"a": ["x", "y"], "region": "seen_last", "b": ["p", "q", "r"]}
    plan = schedule("UTC")
    known = dataset("UTC", "hour", offsets=False, keys=["a", "region", "b", "dt", "hour"], values=lists)
    period = period_of(plan, "2026-03-02")
    place = of_period.Place(period, period, {"day": period.label}, ("0",))
    before = parts.Seen(tuple(f"r{number}" for number in range(seen)), first=not seen)
    found = of_period.parts_by_leaf(plan, place, {"demo.a": known}, seen={"0": before})["0"]
    given_values = []
    for hour, a, region, b in arrivals:
        values = {"a": a, "region": f"r{region}", "b": b, "dt": "2026-03-02", "hour": f"{hour:02}"}
        part = partition_period(known, values)
        grown = parts.joined_by(found, values)
        number = parts.number_of(grown, part, values)
        assert number is not None and not grown.has(number)
        found = Parts.of_text(parts.having(grown, number).text)
        given_values.append(values)
    came = [parts.values_of(found, part) for part in parts.came(found)]
    assert sorted(came, key=str) == sorted(given_values, key=str)
    regions = {values["region"] for values in given_values} | {f"r{number}" for number in range(seen)}
    every = list(parts.every(found))
    assert found.need == len({part.number for part in every}) == 24 * 6 * len(regions)
    assert len(parts.missing(found, 10_000)) == found.need - len(came)
    assert (found.unsure, found.is_enough(0)) == (seen == 0, False)


@pytest.mark.parametrize(("seen", "size"), [(MAX_VALUES, 1), (13, 5_000)])
def test_t25_too_many_values_join_no_job(seen: int, size: int) -> None:
    plan = schedule("UTC")
    day = {"each": "day", "format": "dt=%Y-%m-%d"}
    known = dataset("UTC", "hour", offsets=False, keys=["region", "dt"], period=day, values={"region": "seen_last"})
    period = period_of(plan, "2026-03-02")
    place = of_period.Place(period, period, {"day": period.label}, ("0",))
    before = parts.Seen(tuple(f"{number}".zfill(size) for number in range(seen)), first=False)
    found = of_period.parts_by_leaf(plan, place, {"demo.a": known}, seen={"0": before})["0"]
    assert parts.joined_by(found, {"region": "r", "dt": "2026-03-02"}) == found
    assert of_period.numbers(place, partition_of({"region": "r", "dt": "2026-03-02"}), {"0": found}) == {}


def test_t25_a_job_has_so_many_bytes_of_values() -> None:
    plan = schedule("UTC")
    day = {"each": "day", "format": "dt=%Y-%m-%d"}
    known = dataset("UTC", "hour", offsets=False, keys=["region", "dt"], period=day, values={"region": "seen_last"})
    period = period_of(plan, "2026-03-02")
    place = of_period.Place(period, period, {"day": period.label}, ("0",))
    before = parts.Seen(tuple(f"{number}".zfill(500) for number in range(500)), first=False)
    with pytest.raises(SluiceError, match="at most 200,000 bytes"):
        of_period.parts_by_leaf(plan, place, {"demo.a": known}, seen={"0": before})


def partition_period(a: Dataset, values: dict[str, str]) -> Period:
    found = periods.period_of(a, values)
    assert found is not None
    return found


def partition_of(values: dict[str, str]) -> Event:
    return Event("e", "partition", "partition:demo.a", 0, 0, partition=values, dataset="demo.a")


@pytest.mark.parametrize("order", ["forward", "shuffled"])
def test_t25_ten_thousand_parts_take_2_kb(order: str) -> None:
    numbers = [number * 7919 % 10_000 for number in range(5_000)] if order == "shuffled" else range(5_000)
    plan, a = schedule("UTC"), dataset("UTC", "hour", offsets=False)
    found = parts_of(plan, a, period_of(plan, "2026-03-29"))
    for number in numbers:
        found = parts.having(found, number)
    assert len(found.text) < {"forward": 400, "shuffled": 2_048}[order]
    assert Parts.of_text(found.text) == found
