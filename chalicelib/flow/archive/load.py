"""Import an export into another installation.

1. Check every file.
2. Put all rows but the entry rows, without a ``wake_at``: no tick finds them, and no event or request reaches them.
3. Create the entry rows: the subscriptions, the prefixes of datasets, and the namespaces.
4. Give the rows their ``wake_at``.

Each step may be repeated, so a second import continues one that broke off. Before step 3 no schedule of the namespaces
starts a run, and no request finds one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from chalicelib.core.archive import arriving, manifest
from chalicelib.core.archive.manifest import MANIFEST, Manifest, Table
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.schedule import Subscription
from chalicelib.flow.archive.export import TABLES, Tell, pages_of
from chalicelib.ports import Archive, Copies, StoredCopy


def load(
    copies: Copies,
    archive: Archive,
    into: str,
    buckets: Mapping[str, str],
    now: Instant,
    copy: bool = False,
    tell: Tell = lambda table, rows: None,
) -> Manifest:
    """Import an export. ``into`` names the installation, so that an import that broke off is recognized. ``buckets``
    maps the buckets of the source to those of this installation. ``copy``: import also what the source still runs.

    Raises `SluiceError`, with what to do, if newer code made the export, or if a file is missing or was changed. Also
    if the source still runs the namespaces, or if this installation has them already.
    """
    made = known(copies, archive)
    if not made.closed and not copy:
        message = "expected an export whose source has given the namespaces up, got one whose source still runs them"
        hint = "export with --move, or add --copy if the source never starts again; else both start the same runs"
        raise SluiceError("conflict", message, MANIFEST, hint)
    for part in made.parts:
        manifest.checked(part, archive.text(part.file))
    opened = f"opened-{into}.json"
    doors: list[StoredCopy] = []
    if archive.text(opened) is None:
        _refuse_known(copies, made)
        for table in TABLES:
            doors += _put(copies, archive, made, table, buckets, now, tell)
        archive.put(opened, json.dumps({"into": into}))
    else:
        doors = [each for part in made.parts for each in _arriving(copies, archive, made, part, buckets, now)
                 if _is_door(each)]  # fmt: skip
    # The namespaces are last: a request that finds one finds all of it.
    copies.create(sorted(doors, key=lambda door: isinstance(door.row, Definition)))
    for part in made.parts:
        copies.wake(list(_arriving(copies, archive, made, part, buckets, now)))
    return made


def known(copies: Copies, archive: Archive) -> Manifest:
    """The manifest of an export, checked as `load` does."""
    return manifest.read(archive.text(MANIFEST), copies.layout)


def _is_door(copy: StoredCopy) -> bool:
    """Whether a row lets events or requests find the others. An export of any size has few of them."""
    row = copy.row
    return isinstance(row, Subscription | PrefixRow) or (isinstance(row, Definition) and row.kind == "namespace")


def _refuse_known(copies: Copies, made: Manifest) -> None:
    names = {
        copy.row.name
        for copy in pages_of(copies, "catalog")
        if isinstance(copy.row, Definition) and copy.row.kind == "namespace"
    }
    taken = sorted(names if made.everything else names & set(made.namespaces))
    if taken:
        what = "an installation without namespaces" if made.everything else "an installation without these namespaces"
        hint = "delete them there, or import into another installation; to merge apps, use `sluice apply`"
        raise SluiceError("conflict", f"expected {what}, got one with {', '.join(taken)}", "namespaces", hint)


def _put(
    copies: Copies,
    archive: Archive,
    made: Manifest,
    table: Table,
    buckets: Mapping[str, str],
    now: Instant,
    tell: Tell,
) -> Iterator[StoredCopy]:
    """Put the rows of a table without a ``wake_at``. Yields the entry rows among them, which are not put."""
    count = 0
    for part in made.parts:
        if part.table == table:
            found = list(_arriving(copies, archive, made, part, buckets, now))
            copies.put_asleep([each for each in found if not _is_door(each)])
            count += len(found)
            tell(table, count)
            yield from filter(_is_door, found)


def _arriving(
    copies: Copies, archive: Archive, made: Manifest, part: manifest.Part, buckets: Mapping[str, str], now: Instant
) -> Iterator[StoredCopy]:
    """The rows of a file as they are stored here. The file is checked again: it may have changed since."""
    text = manifest.checked(part, archive.text(part.file))
    for found in _copies(copies, part, text.split("\n")[:-1]):
        row = arriving.arriving(found.row, buckets, made.everything, now)
        if row is not None:
            yield replace(found, row=row)


def _copies(copies: Copies, part: manifest.Part, lines: Sequence[str]) -> Iterator[StoredCopy]:
    for number, line in enumerate(lines, 1):
        try:
            found = copies.copy_of(part.table, json.loads(line)["item"])
        except (ValueError, KeyError, TypeError) as error:
            message = f"expected a row in line {number} of {part.file}, got: {error}"
            raise SluiceError("invalid", message, part.file, manifest.AGAIN) from None
        yield found
