"""The parts that a period needs of a dataset: which they are, which number each has, and which are missing (T25).

The parts of a day are the hours that begin in it: 23, 24 or 25. With listed values, such as regions, they are those
hours for each region. All of this follows from the calendar and the lists; nothing is counted. With ``seen_last``, the
regions are those of the period before, and each that comes besides joins them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from math import prod
from typing import NamedTuple, cast

from chalicelib.core.changes import replace
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time import period_names
from chalicelib.core.time.period_names import Names
from chalicelib.core.time.periods import Calendar, Period, Weekday

MAX_PARTS = 10_000  # of one leaf of a job
MAX_JOBS = 1_000  # to which one partition may belong: the hours of a month, the days of a year to date
MAX_VALUES = 1_000  # of a key
MAX_BYTES = 200_000  # of the lists in the row of a job, which has 400 KB at most
NAMED = 4  # parts that a sentence names
SHOWN = 100  # parts that a list in an answer has


class Part(NamedTuple):
    """A part: its number among those of its leaf, its period, and the values of the other keys of its dataset."""

    number: int
    period: Period
    others: tuple[str, ...]


class Seen(NamedTuple):
    """The values of a key of which partitions are registered: those of the period before, then the others of the period
    itself. ``first``: the period before had none."""

    values: tuple[str, ...]
    first: bool


UNSEEN = Seen((), first=True)


def size_of(values: Mapping[str, Sequence[str]]) -> int:
    """How many bytes the row of a job has because of these lists."""
    return sum(len(json.dumps(listed, separators=(",", ":"))) for listed in values.values())


def begun(parts: Parts) -> Parts:
    """The parts with their number. Raises ``invalid`` for more than `MAX_PARTS`, and if there is none and none will
    join."""
    need = sum(1 for _ in islice(every(parts), MAX_PARTS + 1))
    if need > MAX_PARTS or (need == 0 and parts.grows is None):
        got = f"{'more' if need else 'none'} of {parts.dataset} in {parts.of}"
        raise invalid("of", f"1 to {MAX_PARTS:,} parts of a period", got, "use shorter periods, or longer parts")
    return replace(parts, need=need)


def names_of(parts: Parts) -> Names | None:
    """How folders name the periods; None if the present rules of time zones have no such zone. Then no part is named,
    and none counts."""
    return period_names.of(parts.each, parts.format, parts.zone, cast("Weekday", parts.week_starts))


def number_of(parts: Parts, period: Period, values: Mapping[str, str]) -> int | None:
    """The number of the part with this period and these values; None if it is none of the parts, or the values are not
    those that the format of the parts writes: the dataset has other periods since."""
    if not parts.start <= period.start < parts.end or values.keys() != set(parts.keys):
        return None
    names = names_of(parts)
    if names is None or {**values, **names.write(period)} != values:
        return None
    number = names.calendar.slot(period) - _slots(parts)[0]
    for key, known in parts.values.items():
        if values.get(key) not in known:
            return None
        number = number * len(known) + known.index(values[key])
    return number


def joined_by(parts: Parts, values: Mapping[str, str]) -> Parts:
    """The parts to which a partition with these values can belong: with its value of the key that grows. Unchanged if
    they have it, or would be too many."""
    key = parts.grows
    known = parts.values[key] if key is not None else ()
    if key is None or values.get(key, "") in ("", *known) or len(known) >= MAX_VALUES:
        return parts
    wider = {**parts.values, key: (*known, values[key])}
    if size_of(wider) > MAX_BYTES // 4:
        return parts
    lower = prod(len(listed) for listed in list(parts.values.values())[list(parts.values).index(key) + 1 :])
    have = sum(1 << number + number // (len(known) * lower) * lower for number in _bits(parts.have))
    try:
        return begun(replace(parts, values=wider, have=have))
    except SluiceError:
        return parts


def _bits(have: int) -> Iterator[int]:
    while have:
        yield (have & -have).bit_length() - 1
        have &= have - 1


def having(parts: Parts, number: int) -> Parts:
    return replace(parts, have=parts.have | 1 << number)


def missing(parts: Parts, most: int) -> list[Part]:
    """The first ``most`` parts that have not come."""
    return list(islice(_lacking(parts), most))


def _lacking(parts: Parts) -> Iterator[Part]:
    """The parts that have not come, in the order of their numbers. Those that have come cost nothing."""
    names, size = names_of(parts), prod(map(len, parts.values.values()))
    if names is None:
        return
    calendar, (first, last) = names.calendar, _slots(parts)
    unset = ~parts.have & (1 << (last - first + 1) * size) - 1
    others, slot, period = list(product(*parts.values.values())), -1, None
    while unset:
        number = (unset & -unset).bit_length() - 1
        unset &= unset - 1
        if number // size != slot:
            slot = number // size
            period = calendar.of_slot(first + slot)
        if period is not None and parts.start <= period.start < parts.end:
            yield Part(number, period, others[number % size])


def came(parts: Parts) -> Iterator[Part]:
    """The parts that have come."""
    return (part for part in every(parts) if parts.has(part.number))


def lacks(parts: Parts, most: int = SHOWN) -> tuple[dict[str, str], ...]:
    """The values of the first parts that have not come."""
    return tuple(values_of(parts, part) for part in missing(parts, most))


def values_of(parts: Parts, part: Part) -> dict[str, str]:
    """The values of the partition that is this part, in the order of the keys of its dataset."""
    names = names_of(parts)
    known = {
        **(names.write(part.period) if names is not None else {}),
        **dict(zip(parts.values, part.others, strict=True)),
    }
    return {key: known[key] for key in parts.keys}


def words(parts: Parts) -> str:
    """What is missing, in words: ``2 of 23 hours of 2026-03-29 Europe/Paris in demo.clicks: 05 and 17``."""
    texts = [f"{parts.lacking} of {extent(parts)}: {named(parts)}"] if parts.lacking else []
    if parts.unsure:
        why = f"because the period before had no {parts.grows}"
        texts.append(f"all partitions of {parts.of} in {parts.dataset} that come, {why}")
    return ", and for ".join(texts)


def named(parts: Parts) -> str:
    """The first missing parts, in words: ``05, 06, 07, 08 and 3 more``."""
    return listed([_short(parts, part) for part in missing(parts, NAMED)], parts.lacking)


def listed(texts: Sequence[str], count: int) -> str:
    """These texts, the first of ``count``, as a list in words; empty without any."""
    shown = [*texts, f"{count - len(texts)} more"] if count > len(texts) else list(texts)
    return f"{', '.join(shown[:-1])}{' and ' if shown[1:] else ''}{shown[-1]}" if shown else ""


def extent(parts: Parts) -> str:
    """The set of the parts, in words: ``23 hours of 2026-03-29 Europe/Paris in demo.clicks``."""
    return f"{parts.need} {_noun(parts)} {'for' if parts.around else 'of'} {parts.of} in {parts.dataset}"


def _noun(parts: Parts) -> str:
    if _told_apart(parts, tuple(parts.values)):
        return "partition" if parts.need == 1 else "partitions"
    if parts.each in ("hour", "day", "week", "month", "quarter", "year"):
        return parts.each if parts.need == 1 else f"{parts.each}s"
    return f"{'period' if parts.need == 1 else 'periods'} of {parts.each}"


def _short(parts: Parts, part: Part) -> str:
    """The name of a part within its period: ``05`` of the hours of a day."""
    whole, _, zone = parts.of.partition(" ")
    label, texts = part.period.label, _told_apart(parts, part.others)
    inside = label.removeprefix(whole) if zone == parts.zone else label
    if inside or not texts:
        texts.insert(0, inside[1:] if inside != label and inside[:1] in ("T", "-") else label)
    return "/".join(texts)


def _told_apart(parts: Parts, others: Sequence[str]) -> list[str]:
    """Those of the other keys, or of their values, that tell parts apart: of which several values are listed."""
    return [text for text, listed in zip(others, parts.values.values(), strict=True) if len(listed) > 1]


def every(parts: Parts) -> Iterator[Part]:
    """The parts in the order of their numbers."""
    names, others = names_of(parts), list(product(*parts.values.values()))
    if names is None:
        return
    calendar, first, size = names.calendar, _slots(parts)[0], prod(map(len, parts.values.values()))
    for period in calendar.between(parts.start, parts.end):
        number = (calendar.slot(period) - first) * size
        for offset, values in enumerate(others):
            yield Part(number + offset, period, values)


def _slots(parts: Parts) -> tuple[int, int]:
    """The lowest and the highest number of a period that can begin in the span of the parts."""
    names = names_of(parts)
    return _bounds(names, parts.start, parts.end) if names is not None else (0, 0)


@lru_cache(maxsize=1024)
def _bounds(names: Names, start: Instant, end: Instant) -> tuple[int, int]:
    calendar = names.calendar
    first, last = calendar.slot(calendar.at(start)), calendar.slot(calendar.at(end - 1))
    # Where the clocks go back over midnight, as in St. John's before 2011, a later hour has a lower number.
    a_day = 0 if calendar.minutes is None else 24 * 60 // calendar.minutes * (2 if calendar.offsets else 1)
    before = a_day if _goes_back(calendar, start, start + DAY) else 0
    after = a_day if _goes_back(calendar, end - DAY, end) else 0
    return first - before, last + after


def _goes_back(calendar: Calendar, since: Instant, until: Instant) -> bool:
    return calendar.offset_at(since) > calendar.offset_at(until)
