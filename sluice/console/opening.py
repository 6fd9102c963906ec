"""How the browser gets the token: from a file that only the user can read.

All users of a machine see the command lines of others (``ps``). So the browser is started with the path of a file that
holds the address. ``sluice open`` reads the file to find a console that runs.
"""

from __future__ import annotations

import html
import http.client
import json
import os
import re
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sluice.console.access import HEADER
from sluice.console.server import ABOUT, ADDRESS

_TOKEN = re.compile(r"#token=([A-Za-z0-9_-]+)")
ANSWER_SECONDS = 10.0  # the running console first reads /v1/whoami


@dataclass(frozen=True, slots=True)
class Running:
    """A console that runs on this machine."""

    port: int
    token: str

    def address(self, view: str = "/") -> str:
        """The address of a view. The fragment never leaves the browser, and the page removes it at once."""
        return f"http://{ADDRESS}:{self.port}{view}#token={self.token}"


def folder() -> Path:
    """The folder of the user for files of running programs, or of caches where the system has none."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "sluice")


def start_file(port: int) -> Path:
    return folder() / f"console-{port}.html"


def write_start_file(running: Running, view: str = "/") -> Path:
    """Write the file that leads the browser to a view, readable by the user alone. Raises OSError."""
    path = start_file(running.port)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    address = html.escape(running.address(view), quote=True)
    text = (
        '<!doctype html><meta charset="utf-8"><title>Sluice</title>'
        f'<meta http-equiv="refresh" content="0; url={address}"><p><a href="{address}">Open the console</a>\n'
    )
    # A new file each time: one that exists might be readable by others, or be a link to elsewhere.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def remove_start_file(running: Running) -> None:
    """Remove the file of a console that has ended, unless another console has written its own."""
    path = start_file(running.port)
    if _token_in(path) == running.token:
        path.unlink(missing_ok=True)


def running_console(port: int, url: str) -> Running | None:
    """The console on this port that serves the API at ``url``, or None."""
    token = _token_in(start_file(port))
    if token is None:
        return None
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", ABOUT, headers={HEADER: token})
        answer = connection.getresponse()
        about = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return Running(port, token) if answer.status == 200 and about.get("api") == url else None


def open_browser(path: Path) -> bool:
    """Open a file in the user's browser. False where there is none, such as on a server."""
    return webbrowser.open(path.as_uri())


def view_of(collection: str, name: str) -> str:
    """The path of a view of the page: ``/schedules/demo.flights.clean``."""
    return f"/{collection}/{quote(name, safe='~')}"


def _token_in(path: Path) -> str | None:
    try:
        found = _TOKEN.search(path.read_text(encoding="utf-8"))
    except OSError:
        return None
    return found.group(1) if found else None
