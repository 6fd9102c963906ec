"""``sluice grants``: what a namespace lets the documents of other namespaces use (O9)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import render
from sluice.cli import frame, namespace_document
from sluice.client import Document

# The fields of a grant, in the order in which they are shown, with the verb of each.
KINDS = {
    "run": "run",
    "follow": "follow",
    "context": "read the context of",
    "datasets": "use dataset",
    "events": "receive event",
    "pools": "use pool",
    "policies": "use policy",
}
Granted = tuple[str, str, str]  # a namespace, a verb, and a name


def grants(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace that grants, such as demo.")],
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Replace the grants by those of this file, YAML or JSON."),
    ] = None,
    yes: frame.Yes = False,
    as_json: frame.Json = False,
) -> None:
    """Show what a namespace lets the documents of others use, or replace it."""

    def confirm(present: Document | None, new: Document) -> None:
        kept = _granted(new)
        lost = [f"{to} to {verb} {name}" for to, verb, name in _granted(present) if (to, verb, name) not in kept]
        if lost:
            frame.confirm(f"{namespace} will no longer allow {'; '.join(lost)}. What uses it will wait. Go on?", yes)

    namespace_document.show_or_replace(namespace, "grants", "the grants", file, as_json, _show, confirm)


def _granted(document: Document | None) -> list[Granted]:
    listed = (document or {}).get("grants")
    each = [grant for grant in listed if isinstance(grant, dict)] if isinstance(listed, list) else []
    return [
        (str(grant.get("to")), verb, str(name))
        for grant in each
        for kind, verb in KINDS.items()
        for name in grant.get(kind) or ()
    ]


def _show(view: Document) -> None:
    out = render.stdout()
    render.title(out, "grants of namespace", view["name"], render.dim(f"version {view['version']}"))
    rows: list[tuple[render.Cell, ...]] = [(to, f"{verb} {name}") for to, verb, name in _granted(view)]
    render.table(out, ("TO", "MAY"), rows)
