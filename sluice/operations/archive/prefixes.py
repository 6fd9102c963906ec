"""The prefixes that an import brings, beside those that other namespaces have in the installation (O14)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from chalicelib.core import errors
from chalicelib.core.definitions import prefixes
from chalicelib.core.errors import SluiceError
from chalicelib.core.names import SYSTEM
from chalicelib.core.rows.definition import PrefixRow
from chalicelib.core.writes import Create
from chalicelib.flow.definitions.prefixes import Place, is_of_sluice, lock_of, reserved
from chalicelib.flow.lookup import every
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports

_HINT = (
    "delete the dataset here, or give it another prefix; prefixes may be nested if an administrator gave the one that "
    "arrives to its namespace before the export: sluice prefixes give --nested"
)


@dataclass(frozen=True, slots=True)
class Brought:
    """The prefixes that an import brings. What their namespaces have beside each other is not compared: they had it
    before."""

    rows: tuple[PrefixRow, ...]
    namespaces: frozenset[str]
    given: tuple[PrefixRow, ...]


def brought(arriving: Iterable[object]) -> Brought:
    """The prefixes among rows that arrive, the outermost first."""
    found = (row for row in arriving if isinstance(row, PrefixRow))
    rows = tuple(sorted(found, key=lambda row: (row.bucket, row.prefix)))
    return Brought(rows, frozenset(row.namespace for row in rows), tuple(row for row in rows if row.owner))


def check(ports: Ports, these: Brought) -> None:
    """Raise ``conflict`` for a prefix that another dataset has here, or that two bring, and ``invalid`` for a folder of
    Sluice. Where roles are enforced also for one that lies in a prefix of another namespace, or around one, unless an
    administrator gave it to the namespace that arrives. An installation that observes logs that."""
    for row, following in zip_longest(these.rows, these.rows[1:]):
        if is_of_sluice(ports, _place(row)) and row.namespace != SYSTEM:
            raise reserved(_place(row))
        if following is not None and _place(following) == _place(row):
            raise _conflict(row, following)
        _is_here(ports, row, these)


def create(ports: Ports, these: Brought) -> None:
    """Create the rows of the prefixes, each with its lock. Raises ``conflict`` as `check` does: what was free then may
    belong to another namespace since. A repeat leaves what it finds."""
    for row in these.rows:
        for _ in range(MAX_CONFLICTS):
            lock = lock_of(ports, _place(row))
            if _is_here(ports, row, these) or ports.ledger.commit([Create(row), lock]) is None:
                break
        else:
            raise errors.changed_meanwhile(f"the prefix {_place(row)}")


def _is_here(ports: Ports, row: PrefixRow, these: Brought) -> bool:
    """Whether a row, or what has become of it, is stored already."""
    stored = ports.catalog.prefixes_around(*_place(row))
    here = next((each for each in stored if each.prefix == row.prefix), None)
    if here is not None and (here.namespace != row.namespace or row.dataset not in ("", here.dataset)):
        raise _conflict(row, here)
    if here is None and ports.settings.authorization != "off":
        _check_nesting(ports, row, stored, these)
    return here is not None


def _check_nesting(ports: Ports, row: PrefixRow, stored: Iterable[PrefixRow], these: Brought) -> None:
    others = these.namespaces - {row.namespace}
    known = {each.prefix: each for each in stored if each.namespace not in others}
    known |= {each.prefix: each for each in these.given if each.bucket == row.bucket}
    around = [known[folder] for folder in prefixes.path_of(row.prefix) if folder in known]
    inside = every(partial(ports.catalog.prefixes_in, *_place(row)))
    other = prefixes.in_the_way(row.namespace, around, (each for each in inside if each.namespace not in others))
    if other is None:
        return
    error = _conflict(row, other)
    if ports.settings.authorization == "enforce":
        raise error
    logger.warning("import would be refused", extra={"namespace": row.namespace, "why": error.message})


def _conflict(row: PrefixRow, other: PrefixRow) -> SluiceError:
    message = f"expected prefixes apart from those of this installation, got {_named(row)} beside {_named(other)}"
    return SluiceError("conflict", message, "prefix", _HINT)


def _place(row: PrefixRow) -> Place:
    return Place(row.bucket, row.prefix)


def _named(row: PrefixRow) -> str:
    return f"{_place(row)} of {row.dataset or f'namespace {row.owner}'}"
