"""``sluice whoami``: who signs the requests, and which installation answers."""

from __future__ import annotations

from sluice import render
from sluice.cli import frame


def whoami(as_json: frame.Json = False) -> None:
    """Show who signs your requests, and which installation answers."""
    client = frame.connect()
    answer = client.whoami()
    if as_json:
        render.machine(answer)
        return
    known = [(name, str(answer[name])) for name in ("arn", "account", "region", "stage", "version") if answer.get(name)]
    render.fields(render.stdout(), [*known, ("api", client.url)], indent=0)
