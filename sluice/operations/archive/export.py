"""Export the rows of namespaces into files of JSON lines.

DynamoDB has no snapshot of three tables. So the export reads them twice: if both reads give the same rows, all rows had
these contents at the instant between the reads. A write in between changes the digest, and the export is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import PlanPart
from chalicelib.core.rows.kinds import TABLES, TableName
from chalicelib.core.rows.schedule import Subscription
from sluice.operations.ports import Archive, Copies, StoredCopy
from sluice.operations.rules import manifest as manifests
from sluice.operations.rules.manifest import MANIFEST, PROGRESS, Manifest, Part, Source
from sluice.operations.rules.owner import namespace_of, notifies, plans_of, unheard

MAX_PART = 4_000_000  # characters of a file of lines, roughly: it is read whole
Tell = Callable[[str, int], None]  # gets the table, and how many rows of it were read


@dataclass
class Wanted:
    """Which rows an export has. The first read finds the plans of its backfills and of the steps of its re-processings,
    and the ``keys`` of the events for which its schedules wait."""

    namespaces: frozenset[str]
    plans: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def has(self, copy: StoredCopy) -> bool:
        """Whether the export has a row: one of its namespaces, or an event or a notice of its schedules from
        outside."""
        told = notifies(copy.row) in self.namespaces or any(event.key in self.keys for event in unheard(copy.row))
        return self.owns(copy) or told

    def owns(self, copy: StoredCopy) -> bool:
        row = copy.row
        if kinds.ROWS[type(row)].left_out:
            return False
        if not self.namespaces:
            return True
        if isinstance(row, PlanPart):
            return row.plan in self.plans
        if namespace_of(row) not in self.namespaces:
            return False
        self.plans.update(plans_of(row))
        if isinstance(row, Subscription):
            self.keys.add(row.event_key)
        return True

    def counts(self, copy: StoredCopy) -> bool:
        """Whether a row is in the digest. Parts of plans never change, and the first read may meet one, or an event
        from outside, before it has found what names it."""
        return self.owns(copy) and not isinstance(copy.row, PlanPart)


@dataclass
class Sum:
    """A digest of rows that does not depend on their order, and their number."""

    digest: int = 0
    rows: int = 0

    def add(self, line: str) -> None:
        self.digest ^= int.from_bytes(hashlib.sha256(line.encode()).digest())
        self.rows += 1

    def as_text(self) -> str:
        return f"{self.rows}:{self.digest:064x}"


def export(
    copies: Copies,
    archive: Archive,
    namespaces: Collection[str],
    source: Source,
    now: Instant,
    tell: Tell = lambda table, rows: None,
) -> Manifest:
    """Write the rows of these namespaces, or of the whole installation if there are none, into an archive.

    An export that broke off goes on at the last file. Raises `SluiceError` if the archive has another export, if a
    namespace does not exist, or if rows changed while they were read.
    """
    known = archive.text(MANIFEST)
    if known is not None:
        raise SluiceError(
            "conflict",
            f"expected a folder without an export, got one with the export of {_about(known)}",
            "--to",
            "name an empty folder",
        )
    wanted = Wanted(frozenset(namespaces))
    first = digest(copies, wanted, tell)
    progress = _Progress.read(archive, wanted.namespaces, first)
    for table in TABLES[progress.table :]:
        progress.write(copies, archive, wanted, table, tell)
    if progress.total.as_text() != first.as_text():
        archive.put(PROGRESS, "{}")
        message = f"expected the same {first.rows} rows in both reads, got changes while the export read the tables"
        hint = (
            "freeze the installation as docs/export.md describes (sluice freeze), then export again with this --to; "
            f"the files there now are incomplete, since they have no {MANIFEST}: the next export overwrites them"
        )
        raise SluiceError("conflict", message, None, hint)
    made = Manifest(
        layout=copies.layout,
        exported_at=iso(now),
        namespaces=tuple(sorted(wanted.namespaces)),
        source=source,
        digest=first.as_text(),
        rows=dict(sorted(progress.kinds.items())),
        parts=tuple(progress.parts),
    )
    put_manifest(archive, made)
    return made


def put_manifest(archive: Archive, manifest: Manifest) -> None:
    archive.put(MANIFEST, json.dumps(manifests.as_json(manifest), indent=2) + "\n")


def _about(text: str) -> str:
    try:
        found = json.loads(text)
        return f"{', '.join(found['namespaces']) or 'an installation'} of {found['exported_at']}"
    except (ValueError, KeyError, TypeError):
        return "unknown namespaces"


def digest(copies: Copies, wanted: Wanted, tell: Tell = lambda table, rows: None) -> Sum:
    """The digest of the rows of an export that `Wanted.counts`."""
    total, names = Sum(), set[str]()
    for table in TABLES:
        for copy in pages_of(copies, table):
            if copy.kind == "Definition" and copy.item["pk"] == {"S": "NAMESPACES"}:
                names.add(copy.item["sk"]["S"])
            if wanted.counts(copy):
                total.add(line_of(copy))
        tell(table, total.rows)
    if missing := sorted(wanted.namespaces - names):
        hint = f"the namespaces are {', '.join(sorted(names)) or 'none'}; without one, all are exported"
        raise SluiceError("not_found", f"expected a namespace, got {', '.join(missing)}", "NAMESPACE", hint)
    return total


def pages_of(copies: Copies, table: TableName) -> Iterator[StoredCopy]:
    """Every row of a table."""
    cursor: Any = None
    while True:
        page, cursor = copies.page(table, cursor)
        yield from page
        if cursor is None:
            return


def line_of(copy: StoredCopy) -> str:
    """The line of a row in a file."""
    document = {"kind": copy.kind, "item": copy.item}
    return json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n"


@dataclass
class _Progress:
    """How far the second read has come: the files that are written, and where it goes on."""

    namespaces: tuple[str, ...]
    first: str
    table: int = 0
    cursor: Any = None
    total: Sum = field(default_factory=Sum)
    kinds: Counter[str] = field(default_factory=Counter)
    parts: list[Part] = field(default_factory=list)

    @classmethod
    def read(cls, archive: Archive, namespaces: frozenset[str], first: Sum) -> _Progress:
        """The progress of the same export of the same rows; a new one if the rows have changed since."""
        fresh = cls(tuple(sorted(namespaces)), first.as_text())
        stored: Mapping[str, Any] = json.loads(archive.text(PROGRESS) or "{}")
        if (stored.get("namespaces"), stored.get("first")) != (list(fresh.namespaces), fresh.first):
            return fresh
        return cls(
            fresh.namespaces,
            fresh.first,
            stored["table"],
            stored["cursor"],
            Sum(int(stored["digest"], 16), stored["rows"]),
            Counter(stored["kinds"]),
            [Part.model_validate(part) for part in stored["parts"]],
        )

    def write(
        self,
        copies: Copies,
        archive: Archive,
        wanted: Wanted,
        table: TableName,
        tell: Tell,
    ) -> None:
        """Write the files of one table from the cursor on."""
        lines: list[str] = []
        while True:
            page, self.cursor = copies.page(table, self.cursor)
            lines += self._lines(page, wanted)
            if self.cursor is None or sum(map(len, lines)) >= MAX_PART:
                self.table += self.cursor is None
                self._put(archive, table, lines)
                lines = []
                tell(table, self.total.rows)
            if self.cursor is None:
                return

    def _lines(self, page: Sequence[StoredCopy], wanted: Wanted) -> Iterator[str]:
        for copy in page:
            if wanted.has(copy):
                line = line_of(copy)
                self.kinds[copy.kind] += 1
                if wanted.counts(copy):
                    self.total.add(line)
                yield line

    def _put(self, archive: Archive, table: TableName, lines: Sequence[str]) -> None:
        if lines:
            name, text = f"{table}-{len(self.parts):06d}.jsonl", "".join(lines)
            archive.put(name, text)
            self.parts.append(manifests.part_of(name, table, text))
        document = {
            "namespaces": self.namespaces,
            "first": self.first,
            "table": self.table,
            "cursor": self.cursor,
            "digest": f"{self.total.digest:x}",
            "rows": self.total.rows,
            "kinds": self.kinds,
            "parts": [part.model_dump() for part in self.parts],
        }
        archive.put(PROGRESS, json.dumps(document))
