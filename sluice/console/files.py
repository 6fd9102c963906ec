"""The page: the files that ``make console`` builds, in memory, compressed."""

from __future__ import annotations

import gzip
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sluice.errors import WrongUsage

BUILT = Path(__file__).parent / "static"
ASSETS = "/assets/"  # files whose names hold a digest of their content
# System types differ between machines. A browser refuses a module of another type.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    compressed: bytes
    content_type: str
    immutable: bool


class Page:
    """The files of the page by their paths. A path that names no file is a view of the page, such as
    ``/runs/demo.flights.clean.1.ab12``: its file is the start page, too."""

    def __init__(self, folder: Path = BUILT) -> None:
        start = folder / "index.html"
        if not start.is_file():
            raise WrongUsage(
                f"expected the built console in {folder}, got none", None, "in a checkout, run make console"
            )
        self._files = {
            f"/{path.relative_to(folder).as_posix()}": _read(path, folder)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def find(self, target: str) -> File | None:
        """The file for a request, or None where the page has no such asset (that of an older build)."""
        path = unquote(urlsplit(target).path)
        found = self._files.get(path)
        if found is None and not path.startswith(ASSETS):
            found = self._files["/index.html"]
        return found


def _read(path: Path, folder: Path) -> File:
    content = path.read_bytes()
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    immutable = f"/{path.relative_to(folder).as_posix()}".startswith(ASSETS)
    return File(content, gzip.compress(content, 9, mtime=0), kind, immutable)
