"""Import an export into another installation.

1. Check every file.
2. Put all rows but the entry rows, without a ``wake_at``: no tick finds them, and no event or request reaches them.
3. Count the active runs at limits that did not move with them.
4. Create the entry rows: the subscriptions, the prefixes of datasets, and the namespaces.
5. Give the rows their ``wake_at``.

Each step may be repeated, so a second import continues one that broke off. Before step 4 no schedule of the namespaces
starts a run, and no request finds one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import PostedEvent
from chalicelib.core.rows.kinds import TABLES, TableName
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.schedule import Subscription
from chalicelib.flow.definitions import uses
from chalicelib.flow.definitions.prefixes import take_all
from chalicelib.ports import Ports
from sluice.operations.archive import lists, prefixes, sharing
from sluice.operations.archive.export import Tell, pages_of
from sluice.operations.ports import Archive, Copies, StoredCopy
from sluice.operations.rules import arriving, manifest
from sluice.operations.rules.arriving import Arrival
from sluice.operations.rules.limits import Moving
from sluice.operations.rules.manifest import MANIFEST, Manifest


def load(
    copies: Copies,
    archive: Archive,
    into: str,
    buckets: Mapping[str, str],
    ports: Ports,
    copy: bool = False,
    tell: Tell = lambda table, rows: None,
    by: str = "",
) -> Manifest:
    """Import an export. ``into`` names the installation, so that an import that broke off is recognized. ``buckets``
    maps the buckets of the source to those of this installation. ``copy``: import also what the source still runs.
    ``by`` is the ARN of who imports.

    Raises `SluiceError`, with what to do, if newer code made the export, or if a file is missing or was changed. Also
    if the source still runs the namespaces, or if this installation has them already. Also if they, or the one other
    namespace here, use what they could not use beside each other.
    """
    made = known(copies, archive)
    if not made.closed and not copy:
        message = "expected an export whose source has given the namespaces up, got one whose source still runs them"
        hint = "export with --move, or add --copy if the source never starts again; else both start the same runs"
        raise SluiceError("conflict", message, MANIFEST, hint)
    for part in made.parts:
        manifest.checked(part, archive.text(part.file))
    opened = f"opened-{into}.json"
    was_opened = archive.text(opened) is not None
    if not was_opened:
        _refuse_known(copies, made)
    is_found = was_opened and not _present(copies).isdisjoint(made.namespaces)  # an import broke off in its last steps
    if not is_found:
        for namespace in made.namespaces:
            uses.require_room(ports, namespace)
            take_all(ports, namespace)
    limits = _moving(copies, archive, made, into)
    files = _Files(copies, archive, made, Arrival(buckets, ports.clock.now(), limits, by=by))
    brought = prefixes.brought(copy.row for copy in files.arriving(*made.of("catalog")))
    prefixes.check(ports, brought)
    if not is_found:
        lists.check(ports, lambda: (copy.row for copy in files.arriving(*made.of("catalog"))))
    if not was_opened:
        for table in TABLES:
            files.put(table, tell)
        archive.put(opened, json.dumps({"into": into}))
    sharing.count(ports, copies, files.as_exported("runs"), limits)
    doors = [copy for copy in files.arriving() if _is_door(copy)]
    copies.create([door for door in doors if isinstance(door.row, Subscription)])
    prefixes.create(ports, brought)
    # The namespaces are last: a request that finds one finds all of it.
    copies.create([door for door in doors if isinstance(door.row, Definition)])
    for part in made.parts:
        copies.wake(list(files.arriving(part)))
    return made


def known(copies: Copies, archive: Archive) -> Manifest:
    """The manifest of an export, checked as `load` does."""
    return manifest.read(archive.text(MANIFEST), copies.layout)


def _is_door(copy: StoredCopy) -> bool:
    """Whether a row lets events or requests find the others. An export of any size has few of them."""
    row = copy.row
    return isinstance(row, Subscription | PrefixRow) or (isinstance(row, Definition) and row.kind == "namespace")


def _present(copies: Copies) -> set[str]:
    """The namespaces of this installation."""
    return {
        copy.row.name
        for copy in pages_of(copies, "catalog")
        if isinstance(copy.row, Definition) and copy.row.kind == "namespace"
    }


def _refuse_known(copies: Copies, made: Manifest) -> None:
    names = _present(copies)
    taken = sorted(names if made.everything else names & set(made.namespaces))
    if taken:
        what = "an installation without namespaces" if made.everything else "an installation without these namespaces"
        hint = "delete them there, or import into another installation; to merge apps, use `sluice apply`"
        raise SluiceError("conflict", f"expected {what}, got one with {', '.join(taken)}", "namespaces", hint)


def _moving(copies: Copies, archive: Archive, made: Manifest, into: str) -> Moving:
    """The limits that move with the rows: those of their namespaces, unless this installation has such a limit already.
    It has if runs that use it were imported before, or were left when the namespace was deleted. The archive remembers
    these limits, because a repeated import finds those that it has put itself."""
    own, name = Moving(frozenset(made.namespaces)), f"limits-{into}.json"
    if made.everything:
        return own
    known = archive.text(name)
    if known is None:
        rows = (copy.row for copy in pages_of(copies, "jobs"))
        here = {row.limit_name for row in rows if isinstance(row, LimitState) and own.has(row.limit_name)}
        archive.put(name, known := json.dumps(sorted(here)))
    return replace(own, shared=frozenset(json.loads(known)))


class _Files:
    """The rows in the files of an export, as they were there, and as they are stored here. Each file is checked again
    as it is read: it may have changed since."""

    def __init__(self, copies: Copies, archive: Archive, made: Manifest, arrival: Arrival) -> None:
        self._copies, self._archive, self._made, self._arrival = copies, archive, made, arrival
        if not arrival.everything:
            for copy in self.as_exported("jobs", "runs"):
                for row in arriving.arriving(copy.row, arrival):
                    arrival.use.add(row)

    def as_exported(self, *tables: TableName) -> Iterator[StoredCopy]:
        return (copy for part in self._made.parts if part.table in tables for copy in self._read(part))

    def arriving(self, *parts: manifest.Part) -> Iterator[StoredCopy]:
        for part in parts or self._made.parts:
            for found in self._read(part):
                for row in arriving.arriving(found.row, self._arrival):
                    yield replace(found, row=row, table="jobs" if isinstance(row, PostedEvent) else found.table)

    def put(self, table: TableName, tell: Tell) -> None:
        """Put the rows of a table without a ``wake_at``, all but the entry rows."""
        count = 0
        for part in self._made.parts:
            if part.table == table:
                found = list(self.arriving(part))
                self._copies.put_asleep([each for each in found if not (_is_door(each) or self._is_shared(each))])
                self._copies.put_beside(list(filter(self._is_shared, found)))
                count += len(found)
                tell(table, count)

    def _is_shared(self, copy: StoredCopy) -> bool:
        row = copy.row
        return isinstance(row, LimitState) and row.limit_name in self._arrival.limits.shared

    def _read(self, part: manifest.Part) -> Iterator[StoredCopy]:
        text = manifest.checked(part, self._archive.text(part.file))
        for number, line in enumerate(text.split("\n")[:-1], 1):
            try:
                found = self._copies.copy_of(part.table, json.loads(line)["item"])
            except (ValueError, KeyError, TypeError) as error:
                message = f"expected a row in line {number} of {part.file}, got: {error}"
                raise SluiceError("invalid", message, part.file, manifest.AGAIN) from None
            yield found
