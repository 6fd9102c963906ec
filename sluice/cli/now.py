"""``sluice now``: what waits by what holds it, what runs, what is overdue, and what failures have paused."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from sluice import render, wording
from sluice.cli import filters, frame, stops
from sluice.client import Document


def now(
    namespace: frame.Namespace = None,
    app: filters.OfApp = None,
    workflow: filters.OfWorkflow = None,
    target: filters.OfTarget = None,
    tag: filters.OfTag = None,
    text: filters.Text = None,
    late: filters.Late = False,
    as_json: frame.Json = False,
) -> None:
    """Show what waits by what holds it, what runs, and what is overdue."""
    place = filters.place_of(namespace, app, None)
    given: filters.Given = {"workflow": workflow, "target": target, "tag": tag, "text": text, "late": late}
    answer = frame.connect().now(str(place.namespace), **filters.rows_of(place, frame.now(), **given))
    if as_json:
        render.machine(answer)
        return
    console, at = render.stdout(), frame.now()
    parts = ("waiting", "approvals", "running", "overdue", "paused")
    render.fields(console, [(name, _count(answer[name])) for name in parts], indent=0)
    for stop in answer.get("stopped", ()):  # an older API has none
        console.print(stops.said(stop), soft_wrap=True)
    groups = answer["waiting"]["groups"]
    if groups:
        render.heading(console, "Waiting, by what holds it")
        lines = [
            (group["of"], str(group["count"]), wording.ago(group["oldest"], at), _changes(group), group["why"])
            for group in groups
        ]
        render.table(console, ("HELD BY", "JOBS", "OLDEST", "CHECKED AGAIN", "WHY THE FIRST WAITS…"), lines, indent=2)
    left_out = answer["waiting"]["groups_left_out"]
    if left_out:
        render.note(f"{left_out} smaller groups left out; sluice jobs list shows all jobs")
    overdue = [{**item, "goes_on": wording.ago(item["goes_on_at"], at)} for item in answer["overdue"]["items"]]
    _list("Overdue, the first of each schedule", overdue, ("schedule", "count", "id", "goes_on", "why"))
    _list("Paused after failures", answer["paused"]["schedules"], ("schedule", "since", "reason"))
    asked = [{**of, "since": wording.ago(of["oldest"], at), "reason": of["jobs"][0]["reason"]}
             for of in answer["approvals"]["schedules"]]  # fmt: skip
    _list("Wait for an approval", asked, ("schedule", "count", "late", "since", "reason"))
    if asked:
        render.note(f"approve all jobs of a schedule: sluice jobs approve --schedule {asked[0]['schedule']}")


def _count(part: Document) -> Text:
    return Text(f"at least {part['count']}" if part["at_least"] else str(part["count"]))


def _changes(group: Document) -> str:
    return wording.exact(group["changes_at"]) if group["changes_at"] else "-"


def _list(title: str, items: list[Any], columns: tuple[str, ...]) -> None:
    if items:
        render.heading(render.stdout(), title)
        heads = tuple(name.upper().replace("_", " ") for name in (*columns[:-1], f"{columns[-1]}…"))
        rows = [tuple(str(item[name]) for name in columns) for item in items]
        render.table(render.stdout(), heads, rows, indent=2)
