"""``sluice allowed``: the allow-list of a namespace (O10)."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sluice import render, wording
from sluice.cli import frame, namespace_document
from sluice.client import Document, segment
from sluice.errors import WrongUsage

OWN = ("name", "kind", "version", "updated_at", "updated_by")  # fields of the answer that are no lists


def allowed(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace, such as demo.")],
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Replace the allow-list by that of this file, YAML or JSON."),
    ] = None,
    propose: Annotated[
        bool, typer.Option("--propose", help="Write a list that covers what the namespace uses, as YAML.")
    ] = False,
    yes: frame.Yes = False,
    as_json: frame.Json = False,
) -> None:
    """Show, propose or replace the allow-list of a namespace. Only administrators of the installation replace it."""
    if propose:
        if file is not None:
            raise WrongUsage(
                "expected --propose or --file, got both", "--propose", "write the proposal to a file first"
            )
        _propose(namespace, as_json)
        return

    def confirm(present: Document | None, new: Document) -> None:
        removed = _removed(present or {}, new)
        if removed:
            frame.confirm(f"{namespace} may no longer use {', '.join(removed)}: such runs will fail. Go on?", yes)
        role, before = new.get("target_role"), (present or {}).get("target_role")
        if role != before:
            who = f"the role {role}" if role else "the roles of the Lambdas"
            frame.confirm(f"Sluice will call the targets of {namespace} with {who}. Go on?", yes)

    namespace_document.show_or_replace(namespace, "allowed", "the allow-list", file, as_json, _show, confirm)


def _propose(namespace: str, as_json: bool) -> None:
    view = frame.connect().get(f"/v1/namespaces/{segment(namespace)}/allowed/proposal")
    if as_json:
        render.machine(view)
        return
    lines = [f"# what {namespace} uses; sluice allowed {namespace} --file FILE makes it the allow-list"]
    for kind, value in view["allowed"].items():
        if not isinstance(value, list):
            lines.append(f"{kind}: {json.dumps(value)}")
        elif value:
            lines += [f"{kind}:", *(f"  - {json.dumps(pattern)}" for pattern in value)]
        else:
            lines.append(f"{kind}: []")
    typer.echo("\n".join(lines))
    refused, left_out = view["refused"], view["left_out"]
    render.note(f"{wording.count(len(refused), 'use')} would be refused without it beside another namespace")
    for use in left_out:
        render.note(f"not covered: {use['field']} of {use['document']}: {use['why']}")
    if not view["complete"]:
        render.note("the namespace has more documents than were read: check the others before you use the list")


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
