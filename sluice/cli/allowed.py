"""``sluice allowed``: the allow-list of a namespace (O10)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import render
from sluice.cli import frame, namespace_document
from sluice.client import Document

OWN = ("name", "kind", "version", "updated_at", "updated_by")  # fields of the answer that are no lists


def allowed(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace, such as demo.")],
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Replace the allow-list by that of this file, YAML or JSON."),
    ] = None,
    yes: frame.Yes = False,
    as_json: frame.Json = False,
) -> None:
    """Show the allow-list of a namespace, or replace it. Only administrators of the installation replace it."""

    def confirm(present: Document | None, new: Document) -> None:
        removed = _removed(present or {}, new)
        if removed:
            frame.confirm(f"{namespace} may no longer use {', '.join(removed)}: such runs will fail. Go on?", yes)
        role, before = new.get("target_role"), (present or {}).get("target_role")
        if role != before:
            who = f"the role {role}" if role else "the roles of the Lambdas"
            frame.confirm(f"Sluice will call the targets of {namespace} with {who}. Go on?", yes)

    namespace_document.show_or_replace(namespace, "allowed", "the allow-list", file, as_json, _show, confirm)


def _removed(current: Document, document: Document) -> list[str]:
    """What the new list takes away: the patterns that it lacks, of the kinds that it still limits. Also the other
    things of a kind that was not limited before."""
    found: list[str] = []
    for kind, patterns in document.items():
        before = current.get(kind)
        if not isinstance(patterns, list):
            continue
        if isinstance(before, list):
            found += [str(pattern) for pattern in before if pattern not in patterns]
        else:
            found.append(f"{'any other ' if patterns else ''}{kind.replace('_', ' ')}")
    return found


def _show(view: Document) -> None:
    out = render.stdout()
    render.title(out, "allow-list of namespace", view["name"], render.dim(f"version {view['version']}"))
    rows: list[tuple[render.Cell, ...]] = []
    for kind, patterns in view.items():
        if kind not in OWN and patterns is not None:
            listed = patterns if isinstance(patterns, list) else [patterns]
            rows += [(kind if not number else "", pattern) for number, pattern in enumerate(listed or ["none"])]
    render.table(out, ("LIST", "ALLOWED"), rows)
