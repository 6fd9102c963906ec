"""Registered partitions by their values, where numbers count as numbers: ``day=5`` names the folder ``day=05``.

In a dataset with periods, values name the partition of their period (T24).
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events import periods
from chalicelib.core.events.partitions import identity
from chalicelib.core.events.values import folders, spellings
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows.event import Partition
from chalicelib.ports import Ports

MAX_FOUND = 10  # spellings of the same values that an error names

Values = tuple[str, ...]


def texts(ports: Ports, dataset: str, keys: Sequence[str], given: Values, field: str, above: bool = True) -> Values:
    """The values of the partition that a request names by the first keys, as they stand in its folder.

    They are those given, if a partition with them is registered. Otherwise those of the registered one with the same
    numbers, or without one again those given, since a partition need not be registered. Raises ``invalid`` if several
    have the same numbers, and with ``above`` also if a folder above the given one is spelled otherwise."""
    values = tuple(map(decoded, given))
    found = matching(ports, dataset, keys, values)
    complete = len(found[0]) == len(values)
    if values[: len(found[0])] in found or not (complete or above):
        return given
    if complete and len(found) == 1:
        return found[0]
    raise _other(dataset, keys, found, given, field)


def chosen(ports: Ports, name: str, dataset: Dataset, given: Values, field: str, above: bool = True) -> Values:
    """As `texts`. Values that name a period are those of its partition, as the format writes them. Raises ``invalid``
    also for a partition that is not registered and names no period."""
    values = tuple(map(decoded, given))
    complete = len(values) == len(dataset.keys)
    if dataset.period is not None and not (complete and ports.rows.get(Partition, name, values) is not None):
        try:
            written = tuple(periods.written(dataset, dict(zip(dataset.keys, values, strict=False))).values())
        except SluiceError as refused:
            raise SluiceError(refused.code, refused.message, field, refused.hint) from None
        given = given if written == values else written
    return texts(ports, name, dataset.keys, given, field, above)


def require_new(ports: Ports, name: str, dataset: Dataset, given: Values, field: str) -> None:
    """Raise ``invalid`` for a partition that is not registered, if another one with the same numbers is."""
    known = chosen(ports, name, dataset, given, field, above=False)
    if known != given and identity(dataset, known) != identity(dataset, given):
        raise _other(name, dataset.keys, [known], given, field)


def as_in_folder(ports: Ports, name: str, dataset: Dataset, given: Values) -> Partition | None:
    """The partition that is registered with the values of its folder, although the dataset's format writes those of its
    period otherwise: the partition is older than the format. None if there is none."""
    values = tuple(map(decoded, given))
    return ports.rows.get(Partition, name, values) if values != identity(dataset, given) else None


def of_folder(ports: Ports, name: str, dataset: Dataset, given: Values) -> Partition | None:
    """The registered partition to which a folder with these texts belongs."""
    older = as_in_folder(ports, name, dataset, given)
    return older if older is not None else ports.rows.get(Partition, name, identity(dataset, given))


def _other(dataset: str, keys: Sequence[str], found: Sequence[Values], given: Values, field: str) -> SluiceError:
    known = " or ".join(folders(keys, each).rstrip("/") for each in found)
    expected = f"the values as they stand in the folders of {dataset}: {known}"
    return invalid(field, expected, folders(keys, given).rstrip("/"), "write the numbers with their leading zeros")


def matching(ports: Ports, dataset: str, keys: Sequence[str], values: Sequence[str]) -> list[Values]:
    """The first values of registered partitions that equal these, as texts or as whole numbers: all of them or, where
    no partition has all, as many as some partition has. At most `MAX_FOUND`, and if a partition has exactly these, it
    alone."""
    if len(values) == len(keys) and ports.rows.get(Partition, dataset, tuple(values)) is not None:
        return [tuple(values)]
    found: list[Values] = [()]
    for number, value in enumerate(values, 1):
        end = "/" if number < len(keys) else ""
        deeper = [(*above, each) for above in found for each in _below(ports, dataset, above, value, end)]
        if not deeper:
            break
        found = deeper[:MAX_FOUND]
    return found


def _below(ports: Ports, dataset: str, above: Values, value: str, end: str) -> list[str]:
    """The spellings of a value that registered partitions have after the values ``above``. ``end`` is the separator
    after the value.

    The partitions are sorted by their values as texts. Each read finds the first one from the next possible spelling
    on. So a read skips everything in between, and a few reads of one row are enough."""
    beginning = "".join(f"{each}/" for each in above)
    wanted, found = sorted(f"{each}{end}" for each in spellings(value)), list[str]()
    while wanted:
        page = ports.catalog.partitions(dataset, 1, None, beginning=beginning, since=beginning + wanted[0])
        if not page.items:
            break
        held = page.items[0].values[len(above)]
        if f"{held}{end}" in wanted:
            found.append(held)
        wanted = [each for each in wanted if each > f"{held}{end}"]
    return found
