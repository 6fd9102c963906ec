"""``sluice stop`` and ``sluice start``: everything of a namespace, an app or a tag (L24)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import checks, names, render, wording
from sluice.cli import bulk, filters, frame
from sluice.client import Document
from sluice.errors import WrongUsage
from sluice.names import APP, NAMESPACE

Place = Annotated[
    str | None, typer.Argument(metavar="NS|NS.APP", help="A namespace or an app, such as demo or demo.flights.")
]
Tag = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="KEY[=VALUE]", help="Only what has this tag, or whose app or DAG has it."),
]
Reason = Annotated[
    str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, at most 200 characters; sluice why shows it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Show what would change; change nothing.")]


def stop(
    place: Place = None,
    reason: Reason = "",
    tag: Tag = None,
    stop_timeouts: Annotated[
        bool,
        typer.Option("--stop-timeouts", metavar="", help="Stop the timeouts of waiting jobs; by default they count."),
    ] = False,
    namespace: frame.Namespace = None,
    dry_run: DryRun = False,
    as_json: frame.Json = False,
) -> None:
    """Stop schedules, DAGs, messages and backfills of a namespace, an app or a tag; what runs goes on."""
    if not reason.strip():
        raise WrongUsage("expected a reason, got none", "--reason", 'such as --reason "table is repaired"')
    body: Document = {"reason": reason, **({"timeouts": "stop"} if stop_timeouts else {})}
    _act("stop", place, tag, namespace, {**body, **({"dry_run": True} if dry_run else {})}, as_json)


def start(
    place: Place = None,
    tag: Tag = None,
    namespace: frame.Namespace = None,
    dry_run: DryRun = False,
    as_json: frame.Json = False,
) -> None:
    """Start what was stopped: what ran before runs again, what was paused or disabled stays so."""
    _act("start", place, tag, namespace, {"dry_run": True} if dry_run else {}, as_json)


def _act(
    action: str, place: str | None, tags: list[str] | None, namespace: str | None, body: Document, as_json: bool
) -> None:
    full = _full(place, namespace)
    tag = checks.only("--tag", tags)
    if tag is not None:
        filters.read([tag], None, None)
        body = {**body, "tag": tag}
    path = f"{names.path_of(APP if '.' in full else NAMESPACE, full)}/{action}"
    client = frame.connect()
    report = client.post(path, body, repeatable=True)
    changed = list(report["changed"])
    while not report["complete"] and not report["failed"]:  # the time of a request did not suffice
        report = client.post(path, body, repeatable=True)
        changed += [name for name in report["changed"] if name not in changed]
    report["changed"], report["unchanged"] = changed, [name for name in report["unchanged"] if name not in changed]
    if as_json:
        render.machine(report)
    else:
        _show(f"{full} with {tag}" if tag else full, report)
    if report["failed"]:
        raise typer.Exit(1)


def _full(place: str | None, namespace: str | None) -> str:
    """The full name of the namespace or app. With ``-n``, a name of one part is an app."""
    if place is None:
        return frame.needed_namespace(namespace)
    parts = [namespace, *place.split(".")] if namespace is not None and "." not in place else place.split(".")
    if not (1 <= len(parts) <= len(APP.parts) and all(parts)):
        raise WrongUsage(f"expected a namespace or an app, got {place!r}", "NS|NS.APP", "such as demo or demo.flights")
    return ".".join(str(part) for part in parts)


def _show(scope: str, report: Document) -> None:
    bulk.show(scope, report)
    for stop in report["stops"]:
        render.stdout().print(said(stop), soft_wrap=True)


def said(stop: Document) -> str:
    """A stop in words: ``demo has been stopped since 2026-03-02 02:14:00.000 UTC by user/ann: table is repaired``."""
    place = stop["app"] or stop["namespace"]
    of = f"what has the tag {stop['tag']} in {place}" if stop["tag"] else place
    state = "" if stop["state"] == "stopped" else f" ({stop['state']})"
    since, by = wording.exact(stop["since"]), wording.who(stop["by"])
    still = "; timeouts stand still" if stop.get("timeouts") == "stop" else ""
    return f"{of} has been stopped since {since} by {by}: {stop['reason']}{still}{state}"
