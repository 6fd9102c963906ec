"""``sluice access``: the members of a namespace and their roles (O5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sluice import render
from sluice.cli import frame
from sluice.client import Document, segment
from sluice.refusals import NotFound

if TYPE_CHECKING:
    from sluice.client import Client


def access(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace, such as demo.")],
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Replace the members by those of this file, YAML or JSON."),
    ] = None,
    yes: frame.Yes = False,
    as_json: frame.Json = False,
) -> None:
    """Show the members of a namespace and their roles, or replace them."""
    client = frame.connect()
    path = f"/v1/namespaces/{segment(namespace)}/access"
    if file is None:
        view = client.get(path)
        render.machine(view) if as_json else _show(view)
        return
    from sluice import documents  # imported here: it loads the YAML parser

    document = documents.load_plain(file)
    current = _current(client, path)
    removed = [member for member in _names(current) if member not in _names(document)]
    if removed:
        frame.confirm(f"{', '.join(removed)} will lose every role in {namespace}. Go on?", yes)
    answer = client.put(path, document, if_match=None if current is None else f'"{current["version"]}"')
    if as_json:
        render.machine(answer)
    else:
        render.note(f"{answer['did']} the access of {namespace}, now version {answer['version']}")


def _current(client: Client, path: str) -> Document | None:
    """The present members; None for a namespace without."""
    try:
        return client.get(path)
    except NotFound:
        return None


def _names(document: Document | None) -> list[str]:
    members = (document or {}).get("members")
    found = members if isinstance(members, list) else []
    return [str(member.get("member")) for member in found if isinstance(member, dict)]


def _show(view: Document) -> None:
    out = render.stdout()
    render.title(out, "access of namespace", view["name"], render.dim(f"version {view['version']}"))
    rows: list[tuple[render.Cell, ...]] = [
        (member["member"], ", ".join(member["roles"]), _limits(member)) for member in view["members"]
    ]
    render.table(out, ("MEMBER", "ROLES", "ONLY…"), rows)


def _limits(member: Document) -> str | None:
    """What the roles of a member are limited to: ``events sales.*, datasets flights``."""
    parts = [f"events {prefix}*" for prefix in member.get("events") or ()]
    parts += [f"dataset {name}" for name in member.get("datasets") or ()]
    parts += [f"pool {name}" for name in member.get("pools") or ()]
    return ", ".join(parts) or None
