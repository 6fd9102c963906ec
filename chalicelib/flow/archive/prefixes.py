"""Compare the prefixes that an import brings with those that other namespaces have in the installation (O14)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import takewhile

from chalicelib.core.definitions import prefixes
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import PrefixRow
from chalicelib.flow.archive.export import pages_of
from chalicelib.ports import Copies, Ports

_HINT = (
    "delete the dataset here, or give it another prefix; prefixes may be nested if an administrator gave the one that "
    "arrives to its namespace before the export: sluice prefixes give --nested"
)


def check(ports: Ports, copies: Copies, arriving: Iterable[object]) -> None:
    """Raise ``conflict`` for a prefix that another namespace has here. Where roles are enforced also for one that lies
    in such a prefix, or around one, unless an administrator gave it to the namespace that arrives."""
    brought = list(_rows(arriving))
    here = {(row.bucket, row.prefix): row for row in _rows(copy.row for copy in pages_of(copies, "catalog"))}
    places = sorted(here)
    given = {(row.bucket, row.prefix): row for row in brought if row.owner}
    for row in brought:
        other = here.get((row.bucket, row.prefix))
        if other is None and ports.settings.authorization == "enforce":
            known = here | given
            folders = ((row.bucket, folder) for folder in prefixes.path_of(row.prefix))
            around = [known[folder] for folder in folders if folder in known]
            following = places[bisect_left(places, (row.bucket, row.prefix)) :]
            inside = (here[place] for place in takewhile(partial(_is_in, row), following))
            other = prefixes.in_the_way(row.namespace, around, inside)
        if other is not None:
            got = f"{_named(row)} beside {_named(other)}"
            message = f"expected prefixes apart from those of this installation, got {got}"
            raise SluiceError("conflict", message, "prefix", _HINT)


def _rows(rows: Iterable[object]) -> Iterator[PrefixRow]:
    return (row for row in rows if isinstance(row, PrefixRow))


def _is_in(row: PrefixRow, place: tuple[str, str]) -> bool:
    return row.bucket == place[0] and place[1].startswith(row.prefix)


def _named(row: PrefixRow) -> str:
    return f"s3://{row.bucket}/{row.prefix} of {row.dataset or f'namespace {row.owner}'}"
