"""Show or replace a document that a namespace has once: what ``sluice access``, ``allowed``, ``grants`` and ``quotas``
have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice import render
from sluice.cli import frame
from sluice.client import Document, segment
from sluice.refusals import NotFound

if TYPE_CHECKING:
    from sluice.client import Client


def show_or_replace(
    namespace: str,
    route: str,
    label: str,
    file: str | None,
    as_json: bool,
    show: Callable[[Document], None],
    confirm: Callable[[Document | None, Document], None] = lambda present, new: None,
) -> None:
    """Show the document at ``route`` of a namespace, or replace it by that of ``file``.

    ``label`` names it, such as ``the quotas``. ``confirm`` asks the user before something is lost, with the present
    document (None for a namespace without) and the new one. The API refuses the new one if another user has changed the
    document since it was read."""
    client = frame.connect()
    path = f"/v1/namespaces/{segment(namespace)}/{route}"
    if file is None:
        view = client.get(path)
        render.machine(view) if as_json else show(view)
        return
    from sluice import documents  # imported here: it loads the YAML parser

    document = documents.load_plain(file)
    present = _present(client, path)
    confirm(present, document)
    version = present["version"] if present is not None else 0
    answer = client.put(path, document, if_match=f'"{version}"' if version else None)
    if as_json:
        render.machine(answer)
    else:
        render.note(f"{answer['did']} {label} of {namespace}, now version {answer['version']}")
        if answer.get("warning"):
            render.note(f"warning: {answer['warning']}")


def _present(client: Client, path: str) -> Document | None:
    try:
        return client.get(path)
    except NotFound:
        return None
