"""``sluice audit``: who has changed what, and who was refused (O5)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import render, wording
from sluice.cli import filters, frame, tables
from sluice.client import Document, segment


def audit(
    namespace: Annotated[
        str | None, typer.Argument(metavar="NAMESPACE", help="The namespace, such as demo; without it, all.")
    ] = None,
    since: filters.Since = None,
    until: filters.Until = None,
    who: Annotated[str | None, typer.Option("--who", metavar="TEXT", help="A part of the signer's ARN.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="A full name or the beginning of one.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Such as schedule, job or access.")] = None,
    refused: Annotated[bool, typer.Option("--refused", metavar="", help="Only requests that were refused.")] = False,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List who has changed what, and who was refused, newest first."""
    query = {
        **filters.span(since, until, frame.now()),
        "who": who,
        "name": name,
        "kind": kind,
        "outcome": "refused" if refused else None,
    }
    path = "/v1/audit" if namespace is None else f"/v1/namespaces/{segment(namespace)}/audit"
    answer = frame.connect().listing(path, query, most=limit or None)
    items = answer["items"]
    if as_json:
        render.machine(answer)
        return
    if not items:
        render.note("no records match")
        return
    rows: list[tuple[render.Cell, ...]] = [
        (
            wording.ago(item["at"], frame.now()),
            wording.who(item["by"]),
            item["operation"],
            item["name"] or item["namespace"],
            _what(item),
        )
        for item in items
    ]
    render.table(render.stdout(), ("WHEN", "WHO", "OPERATION", "NAME", "WHAT…"), rows)
    tables.rest(answer, len(items), "sluice audit ...")


def _what(item: Document) -> str:
    """What has changed, in short: versions and states, or the reason of a refusal."""
    if item["outcome"] in ("refused", "observed"):
        times = f" ({item['count']} times)" if item["count"] > 1 else ""
        return f"{item['outcome']}{times}: {item['reason']}"
    before, after = item["before"], item["after"]
    if before is None:
        return f"created{_facts(after)}"
    if after is None:
        return f"deleted{_facts(before)}"
    changed = [
        f"{field} {before.get(field)} -> {after.get(field)}"
        for field in ("version", "state")
        if field in after and before.get(field) != after.get(field)
    ]
    return ", ".join(changed) or "changed"


def _facts(side: Document | None) -> str:
    found = [f"{field} {side[field]}" for field in ("version", "state", "id", "runs") if side and field in side]
    return f": {', '.join(found)}" if found else ""
