"""What the steps of an export, an import and a repair need besides the ports of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chalicelib.core.instants import Instant
from chalicelib.core.rows.kinds import TableName
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.writes import Row


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """A row of a table, as an export has it. ``kind`` is the name of its class, ``item`` the stored item as JSON."""

    table: TableName
    kind: str
    row: Row | LimitState
    item: Mapping[str, Any]


class Copies(Protocol):
    """Whole tables, for exports, imports and repairs. No Lambda has it: it needs an administrator's rights."""

    layout: int

    def page(self, table: TableName, cursor: Any) -> tuple[tuple[StoredCopy, ...], Any]:
        """A page of a table in no order, read strongly, and the cursor of the next page; None after the last one."""

    def copy_of(self, table: TableName, item: Mapping[str, Any]) -> StoredCopy:
        """The copy of an item of an export. Raises ValueError if this version cannot read it."""

    def put_asleep(self, copies: Sequence[StoredCopy]) -> None:
        """Put rows so that no tick finds them. A repeat changes nothing."""

    def create(self, copies: Sequence[StoredCopy]) -> None:
        """Put those of the rows that do not exist yet."""

    def wake(self, copies: Sequence[StoredCopy]) -> None:
        """Give rows their ``wake_at``, unless another instant was stored since, or the row is deleted."""

    def delete(self, copies: Sequence[StoredCopy]) -> None: ...

    def put_limit(self, state: LimitState) -> None:
        """Store the counts of a limit, which nothing else writes at present. No job waits there any more."""

    def put_beside(self, copies: Sequence[StoredCopy]) -> None:
        """Store limits that exist already; what they count stays. A repeat changes nothing."""

    def put_later(self, limit_name: str, instants: Mapping[str, Instant]) -> None:
        """Store instants of a limit by their attributes, each unless it has a later one."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A run as its target lists it. Sluice or another caller of the target gave it its ``name``."""

    target_id: str
    name: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Changed:
    """An object that was put into a bucket."""

    key: str
    at: Instant
    size: int
    etag: str


class Archive(Protocol):
    """The files of an export, each small enough for the memory."""

    def text(self, name: str) -> str | None: ...

    def put(self, name: str, text: str) -> None: ...
