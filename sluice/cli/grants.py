"""``sluice grants``: what a namespace lets the documents of other namespaces use (O9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sluice import render
from sluice.cli import frame
from sluice.client import Document, segment
from sluice.refusals import NotFound

if TYPE_CHECKING:
    from sluice.client import Client

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
    client = frame.connect()
    path = f"/v1/namespaces/{segment(namespace)}/grants"
    if file is None:
        view = client.get(path)
        render.machine(view) if as_json else _show(view)
        return
    from sluice import documents  # imported here: it loads the YAML parser

    document = documents.load_plain(file)
    current = _current(client, path)
    kept = _granted(document)
    lost = [f"{to} to {verb} {name}" for to, verb, name in _granted(current) if (to, verb, name) not in kept]
    if lost:
        frame.confirm(f"{namespace} will no longer allow {'; '.join(lost)}. What uses it will wait. Go on?", yes)
    answer = client.put(path, document, if_match=None if current is None else f'"{current["version"]}"')
    if as_json:
        render.machine(answer)
    else:
        render.note(f"{answer['did']} the grants of {namespace}, now version {answer['version']}")


def _current(client: Client, path: str) -> Document | None:
    """The present grants; None for a namespace without."""
    try:
        return client.get(path)
    except NotFound:
        return None


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
