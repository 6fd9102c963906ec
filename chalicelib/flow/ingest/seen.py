"""Which values of a key the partitions of a period have: ``values: {region: seen_last}`` of a dataset (T25).

The registry says it. Its rows are in the order of the keys of the dataset, so the way to the values depends on where
the key stands. Behind all others, a list of each folder above has them. Otherwise one read finds each value, and the
partitions below are looked up by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, product

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.of_period import Place
from chalicelib.core.rows.event import Partition
from chalicelib.core.time.periods import span_before, span_within
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.parts import MAX_PARTS, MAX_VALUES, UNSEEN, Seen
from chalicelib.flow import lookup, many
from chalicelib.ports import Ports

Span = tuple[Instant, Instant]
Values = tuple[str, ...]


def by_leaf(
    ports: Ports,
    schedule: Schedule,
    place: Place,
    datasets: Mapping[str, Dataset],
    is_granted: Callable[[str], bool] = lambda _: True,
) -> dict[str, Seen]:
    """The values that a job of a period begins with, for each leaf whose dataset has ``seen_last``: as they are
    registered now. Nothing is read of a dataset that is not granted. Raises ``invalid`` for too many."""
    found, read = dict[str, Seen](), dict[str, Seen]()
    for leaf in tree.leaves(schedule.trigger):
        for each in leaf.trigger.datasets():
            dataset = datasets.get(each.name)
            if dataset is None or dataset.grows is None or dataset.grows in schedule.by:
                continue
            if each.name not in read:
                read[each.name] = _seen(ports, schedule, place, each.name, dataset) if is_granted(leaf.id) else UNSEEN
            found[leaf.id] = read[each.name]
    return found


def _seen(ports: Ports, schedule: Schedule, place: Place, name: str, dataset: Dataset) -> Seen:
    rule, own = dataset.period, schedule.per.names(schedule.zone) if schedule.per is not None else None
    names = rule.names if rule is not None else None
    if names is None or own is None:
        return UNSEEN
    fixed = {key: place.correlation[key] for key in schedule.by}
    below: dict[Values, list[str]] = {}
    before = _values(ports, name, dataset, fixed, span_before(place.period, own.calendar, names.calendar), below)
    now = _values(ports, name, dataset, fixed, span_within(place.period, names.calendar), below)
    return Seen((*before, *(value for value in now if value not in before)), not before)


def _values(
    ports: Ports, name: str, dataset: Dataset, fixed: Mapping[str, str], span: Span, below: dict[Values, list[str]]
) -> list[str]:
    """The values of the key of which a partition is registered whose period begins in a span, in their order. ``below``
    has the values below the folders above that were read before."""
    key, at = dataset.grows or "", dataset.keys.index(dataset.grows or "")
    folders = list(islice(_folders(dataset, key, fixed, span), MAX_PARTS + 1))
    above = list(dict.fromkeys(folder[:at] for folder in folders))
    if len(folders) > MAX_PARTS or len(above) > MAX_VALUES:
        raise _too_many(name, key, "more folders of a period")
    if at == len(dataset.keys) - 1:
        lists = (partial(ports.catalog.partitions, name, beginning=_text(folder)) for folder in above)
        rows = list(islice((row for each in lists for row in lookup.every(each)), MAX_PARTS + 1))
    else:
        for folder in above:
            if folder not in below:
                below[folder] = list(islice(_distinct(ports, name, folder), MAX_VALUES + 1))
            if len(below[folder]) > MAX_VALUES:
                raise _too_many(name, key, "more")
        places = [(*folder[:at], value, *folder[at:]) for folder in folders for value in below[folder[:at]]]
        if len(places) > MAX_PARTS:
            raise _too_many(name, key, f"{len(places):,} partitions to look up")
        rows = many.rows(ports, Partition, ((name, place) for place in places))
    found = sorted({row.values[at] for row in rows})
    if len(found) > MAX_VALUES or len(rows) > MAX_PARTS:
        raise _too_many(name, key, "more")
    return found


def _too_many(name: str, key: str, got: str) -> SluiceError:
    hint = f"list the values of {key} in the dataset, or write {key} behind the period in its keys"
    return invalid("trigger.dataset", f"at most {MAX_VALUES:,} values of {key} in {name}", got, hint)


def _folders(dataset: Dataset, key: str, fixed: Mapping[str, str], span: Span) -> Iterator[Values]:
    """The values of all keys but ``key``, in their order, that partitions of a period in the span have."""
    names = dataset.period.names if dataset.period is not None else None
    if names is None:
        return
    for period in names.calendar.between(*span):
        written = names.write(period)
        known = dataset.listed | {each: (value,) for each, value in {**fixed, **written}.items()}
        yield from product(*(known.get(each, ()) for each in dataset.keys if each != key))


def _distinct(ports: Ports, name: str, above: Values) -> Iterator[str]:
    """The values of the next key below a folder. Each read finds the first row behind those of the value before."""
    beginning, since = _text(above), ""
    while True:
        page = ports.catalog.partitions(name, 1, None, beginning=beginning, since=since)
        if not page.items:
            return
        value = page.items[0].values[len(above)]
        yield value
        since = f"{beginning}{value}0"  # 0 is the character after /


def _text(values: Values) -> str:
    return "".join(f"{value}/" for value in values)
