"""The manifest of an export: which files it has, what they contain, and whether this version can import them.

An export is a folder of JSON lines. `manifest.json` is written last, so a folder without one is not complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.kinds import TableName

MANIFEST, PROGRESS = "manifest.json", "progress.json"
VERSION = 1  # of the form of the files; a change that older code would misread raises it
AGAIN = "copy the export again from where it was written, or run `sluice export` again"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True)


class Part(_Document):
    """One file of lines: rows of one table. ``bytes`` and ``sha256`` are those of the file."""

    file: str = Field(pattern=r"^[a-z]+-[0-9]{6}\.jsonl$")
    table: TableName
    rows: int
    bytes: int
    sha256: str


class Source(_Document):
    """The installation that was exported: its tables, and the buckets whose names its rows contain."""

    catalog: str
    jobs: str
    runs: str
    lake: str = ""
    control: str = ""


class Manifest(_Document):
    """``namespaces`` is empty in an export of the whole installation. ``layout`` is that of the rows. ``closed``: the
    source has given the namespaces up, so nothing of them starts there any more. ``digest`` is that of all rows in any
    order, ``rows`` counts them by kind."""

    version: int = VERSION
    layout: int
    exported_at: str
    namespaces: tuple[str, ...] = ()
    source: Source
    closed: bool = False
    digest: str = ""
    rows: Mapping[str, int] = Field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def of(self, table: TableName) -> tuple[Part, ...]:
        """The files with the rows of a table."""
        return tuple(part for part in self.parts if part.table == table)

    @property
    def everything(self) -> bool:
        return not self.namespaces


def part_of(name: str, table: TableName, text: str) -> Part:
    """The entry of a file of lines in the manifest."""
    content = text.encode()
    sha256 = hashlib.sha256(content).hexdigest()
    return Part(file=name, table=table, rows=text.count("\n"), bytes=len(content), sha256=sha256)


def read(text: str | None, layout: int) -> Manifest:
    """The manifest in a file. Raises `SluiceError` if there is none, if it is malformed, or if newer code wrote it than
    this code, which reads rows up to ``layout``."""
    if text is None:
        message = f"expected {MANIFEST} in the export, got none: the export is not complete"
        raise SluiceError("invalid", message, MANIFEST, "run `sluice export` with the same --to; it goes on")
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        message = f"expected the manifest of an export, got: {error.errors()[0]['msg']}"
        raise SluiceError("invalid", message, MANIFEST, AGAIN) from None
    if manifest.version > VERSION or manifest.layout > layout:
        got = f"form {manifest.version}, layout {manifest.layout}"
        message = f"expected an export of form {VERSION} and layout {layout} or lower, got {got}"
        hint = "deploy the version of Sluice that made the export, or a newer one, then import again"
        raise SluiceError("invalid", message, MANIFEST, hint)
    return manifest


def checked(part: Part, text: str | None) -> str:
    """The content of a file of lines. Raises `SluiceError` if it is missing, truncated or changed."""
    if text is None:
        raise SluiceError("invalid", f"expected {part.file} in the export, got none", part.file, AGAIN)
    found = part_of(part.file, part.table, text)
    if found.bytes < part.bytes:
        message = f"expected {part.bytes} bytes in {part.file}, got {found.bytes}: the file is truncated"
        raise SluiceError("invalid", message, part.file, AGAIN)
    if found != part:
        message = f"expected the checksum {part.sha256[:12]} of {part.file}, got {found.sha256[:12]}: it was changed"
        raise SluiceError("invalid", message, part.file, AGAIN)
    return text


def as_json(manifest: Manifest) -> dict[str, Any]:
    return manifest.model_dump(mode="json")
