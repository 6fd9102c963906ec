"""The plan of a deployment in Markdown, for a comment on a pull request or a merge request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sluice import wording
from sluice.client import Document
from sluice.errors import Failure

CHANGED = ("created", "replaced", "deleted", "untouched")
# GitHub takes comments of 65,536 characters; the rest is for a heading of the pipeline.
MAX_TEXT = 60_000


def plan(name: str, report: Document, new_namespace: str | None, losses: Iterable[str], dry_run: bool) -> str:
    """What a deployment changes, a row for each part. ``losses`` are what it ends of the work in flight, such as
    ``drop 3 jobs``."""
    rows = [*([("created", "namespace", new_namespace, "")] if new_namespace else []), *_rows(report)]
    counts = [f"{count} {change}" for change in CHANGED if (count := sum(row[0] == change for row in rows))]
    kept = len(report.get("kept") or ())
    counts += [f"{kept} kept"] if kept else []
    lines = [f"### {_code(name)}: {', '.join(counts) or 'nothing changes'}", ""]
    if lost := list(losses):
        lines += [f"**Work in flight:** {', '.join(lost)}", ""]
    if rows:
        lines += ["| Change | Kind | Name | Details |", "|---|---|---|---|"]
        lines += [f"| {change} | {kind} | {_code(full)} | {details} |" for change, kind, full, details in rows]
    lines += [f"- check {_code(note)}" for note in report.get("notes") or ()]
    lines += ["", "Nothing was stored." if dry_run else "The app is deployed."]
    return _cut(lines)


def refused(name: str, failure: Failure, dry_run: bool) -> str:
    """Why a deployment is refused, a row for each problem. One that is not a dry run may have stored some parts."""
    lines = [f"### {_code(name)}: refused", "", "| Where | Problem | What to do |", "|---|---|---|"]
    for each in failure.problems:
        cells = (each.field, each.message, each.hint)
        lines.append(f"| {' | '.join(_code(cell) if cell else '' for cell in cells)} |")
    return _cut([*lines, "", "Nothing was stored." if dry_run else "The app is not deployed as a whole."])


def _rows(report: Document) -> Iterator[tuple[str, str, str, str]]:
    """The change, the kind, the name and the details of each part that does not stay as it is."""
    fields: Mapping[str, Any] = report.get("changes") or {}
    effects: Mapping[str, Any] = report.get("effects") or {}
    for change in CHANGED:
        for part in report.get(change) or ():
            kind, _, full = str(part).partition(" ")
            effect = effects.get(part)
            details = [*map(str, fields.get(part) or ()), *([str(effect["text"])] if effect else [])]
            yield change, kind, full, "<br>".join(map(_code, details))


def _code(text: str) -> str:
    """A text as code in a cell of a table: nothing in it is read as Markdown, as HTML, or as the name of a user."""
    flat = " ".join(text.replace("|", "\\|").split())
    fence = "`" * (1 + max(map(len, _runs(flat)), default=0))
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _runs(text: str) -> Iterator[str]:
    """The runs of backquotes in a text."""
    from re import findall

    yield from findall("`+", text)


def _cut(lines: list[str]) -> str:
    """The lines as a text that fits into a comment. The last line stays."""
    *body, last = lines
    size, kept = len(last), 0
    for line in body:
        size += len(line) + 1
        if size > MAX_TEXT:
            break
        kept += 1
    left = len(body) - kept
    rest = ["", f"{wording.count(left, 'more line')}: the plan is longer than a comment may be.", ""] if left else []
    return "\n".join([*body[:kept], *rest, last])
