"""``sluice access``: the members of a namespace and their roles (O5)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import render
from sluice.cli import frame, namespace_document
from sluice.client import Document


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

    def confirm(present: Document | None, new: Document) -> None:
        removed = [member for member in _names(present) if member not in _names(new)]
        if removed:
            frame.confirm(f"{', '.join(removed)} will lose every role in {namespace}. Go on?", yes)

    namespace_document.show_or_replace(namespace, "access", "the access", file, as_json, _show, confirm)


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
