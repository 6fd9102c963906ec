"""``sluice apply``: deploy the apps in files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from sluice import render, uploads, wording
from sluice.cli import markdown, progress
from sluice.cli.frame import Json, Settings, ValueFiles, Yes, confirm, connect, values_of
from sluice.client import Client, Document
from sluice.errors import ApiRefused, Problem, WrongUsage
from sluice.names import APP, NAMESPACE, path_of

if TYPE_CHECKING:
    from sluice.documents import Source

# The order of the summary: first what changed, then what did not.
LARGE = 100  # definitions; the deployment of more takes so long that a line says it has begun
PARTS = ("datasets", "policies", "pools", "calendars", "workflows", "schedules", "dags")
CHANGES = ("created", "replaced", "deleted", "untouched", "kept")


def apply(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="App documents, YAML or JSON; - for stdin.")],
    settings: Settings = None,
    value_files: ValueFiles = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Check and report; store nothing.")] = False,
    update_schedules: Annotated[
        bool | None,
        typer.Option(
            "--update-schedules/--no-update-schedules",
            help="Update the schedules to those of the files, or keep them. The default is set by the installation.",
        ),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option("--restart", metavar="", help="Drop what waits at each schedule that changes. It begins anew."),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="markdown: the plan as a comment on a change.")
    ] = None,
) -> None:
    """Deploy apps: create and replace what the files contain, and delete what they no longer contain.

    On a terminal, the command shows the changes first, with the work in flight that they end, and asks.
    """
    # Imported here because a YAML parser is slow to load and only this command needs it.
    from sluice import documents

    if form not in (None, "markdown") or (form and as_json):
        got = "--json beside it" if form == "markdown" else repr(form)
        raise WrongUsage(f"expected markdown, got {got}", "--format", "leave it out for a table")
    values = values_of(value_files, settings)
    apps = [documents.source(file, values) for file in files]
    names = [name_of(source.path, source.document) for source in apps]  # read all files before the first request
    client = connect()
    query = {"dry_run": dry_run or None, "update_schedules": update_schedules, "restart": restart or None}
    asks = sys.stdin.isatty() and not (yes or dry_run or as_json or form)
    for number, (name, source) in enumerate(zip(names, apps, strict=True)):
        namespace = name.partition(".")[0]
        new = not _exists(client, namespace)
        if asks or (new and not dry_run):
            # Checked first, so that a refused document leaves no namespace behind.
            with progress.counted(len(apps), "apps", as_json) as draw:
                draw(number, f"checking {name}")
                plan = _deploy_as(form, client, name, source, {**query, "dry_run": True})
            if asks:
                _ask(name, plan, namespace if new else None)
        with progress.counted(len(apps), "apps", as_json) as draw:
            size = _size(source.document)
            what = f"{'checking' if dry_run else 'deploying'} {name}, {wording.count(size, 'definition')}"
            draw(number, what)
            if size >= LARGE and not (as_json or render.stderr().is_terminal):
                render.note(what)
            if new and not dry_run:
                client.put(path_of(NAMESPACE, namespace), {})
            report = _deploy_as(form, client, name, source, query)
        if as_json:
            render.machine(report)
        elif form:
            render.plain(markdown.plan(name, report, namespace if new else None, _losses(report), dry_run))
        else:
            _show(name, report, dry_run, namespace if new else None)


def placed(problem: Problem, source: Source) -> Problem:
    """A problem of a document, with the file and the line of its field."""
    if problem.field is None or source.line_of(problem.field) is None:
        return problem
    return replace(problem, field=source.place(problem.field))


def _ask(name: str, plan: Document, new_namespace: str | None) -> None:
    """Show what the deployment would change, and ask for confirmation unless nothing would change."""
    if new_namespace is None and not any(plan.get(change) for change in ("created", "replaced", "deleted")):
        return
    _show(name, plan, True, new_namespace)
    does = [f"change {name}", *([f"delete {len(plan['deleted'])}"] if plan.get("deleted") else []), *_losses(plan)]
    first = ", ".join(does[:-1])
    confirm(f"{f'{first}, and ' if first else ''}{does[-1]}?", yes=False)


def _losses(report: Document) -> list[str]:
    """What a deployment ends of the work in flight: ``drop 3 jobs``, ``end 1 backfill``."""
    effects = (report.get("effects") or {}).values()
    dropped = sum(effect.get("dropped", 0) for effect in effects)
    backfills = sum(len(effect.get("backfills", ())) for effect in effects)
    dag_runs = sum(len(effect.get("dag_runs", ())) for effect in effects)
    least = "at least " if any(effect.get("more") for effect in effects) else ""
    counts = (("drop", dropped, "job"), ("end", backfills, "backfill"), ("end", dag_runs, "DAG run"))
    return [f"{verb} {least}{wording.count(number, noun)}" for verb, number, noun in counts if number]


def name_of(file: str, document: Document) -> str:
    for field in ("namespace", "app"):
        value = document.get(field)
        if not isinstance(value, str) or not value or "." in value:
            got = "nothing" if value is None else repr(value)
            hint = f"add `{field}: name` at the top of the document"
            if isinstance(value, str) and "." in value:
                hint = f"write one name without a dot, such as `{field}: {value.rpartition('.')[2]}`"
            raise WrongUsage(f"expected the name of its {field}, got {got}", f"{file}: {field}", hint)
    return f"{document['namespace']}.{document['app']}"


def _size(document: Document) -> int:
    """How many definitions an app document has: its schedules, workflows and so on."""
    return sum(len(part) for field, part in document.items() if field in PARTS and isinstance(part, Mapping))


def _exists(client: Client, namespace: str) -> bool:
    """Whether the namespace exists. An existing one is not replaced: it keeps its description."""
    try:
        client.get(path_of(NAMESPACE, namespace))
    except ApiRefused as refused:
        if refused.status != 404 or refused.code != "not_found":
            raise
        return False
    return True


def _deploy(client: Client, name: str, source: Source, query: Mapping[str, bool | None]) -> Document:
    """The report of a deployment. Raises ``ApiRefused``, with the file and line of each problem."""
    try:
        return uploads.deploy(client, path_of(APP, name), source.document, query)
    except ApiRefused as refused:
        refused.problems = tuple(placed(problem, source) for problem in refused.problems)
        refused.field = refused.problems[0].field
        raise


def _deploy_as(
    form: str | None, client: Client, name: str, source: Source, query: Mapping[str, bool | None]
) -> Document:
    """The same. As Markdown, the problems are printed before the error."""
    try:
        return _deploy(client, name, source, query)
    except ApiRefused as refused:
        if form:
            render.plain(markdown.refused(name, refused, bool(query.get("dry_run"))))
        raise


def _of_work(effect: Document | None) -> list[Text]:
    """What becomes of the work in flight of a schedule; marked if some of it is lost."""
    if effect is None:
        return []
    loses = any(effect.get(field) for field in ("dropped", "backfills", "spans", "dag_runs", "more"))
    if effect["code"] == "deleted" and not loses:
        return []
    return [Text(str(effect["text"]), "yellow" if loses else "")]


def _show(name: str, report: Document, dry_run: bool, new_namespace: str | None) -> None:
    rows = [("created", "namespace", new_namespace)] if new_namespace else []
    for change in CHANGES:
        for item in report.get(change, ()):
            kind, _, full = str(item).partition(" ")
            rows.append((change, kind, full))
    console = render.stdout()
    details, effects = report.get("changes") or {}, report.get("effects") or {}
    cells: list[tuple[render.Cell, ...]] = [
        (render.state(change), kind, full, render.changes(console, details.get(part, ()), _of_work(effects.get(part))))
        for change, kind, full, part in ((*row, f"{row[1]} {row[2]}") for row in rows)
    ]
    render.table(console, ("CHANGE", "KIND", "NAME", "FIELDS…"), cells)
    for note in report.get("notes") or ():
        render.note(f"check {note}")
    counts = [(change, count) for change in CHANGES if (count := sum(row[0] == change for row in rows))]
    parts = [Text.assemble(f"{count} ", render.state(change)) for change, count in counts]
    line = Text.assemble(f"{name}: ", Text(", ").join(parts) if parts else wording.NOTHING)
    console.print()
    console.print(line.append("  (dry run: nothing was stored)" if dry_run else ""), soft_wrap=True)
    if left := report.get("left_alone"):
        render.note(f"left alone, because they were changed after this deployment was accepted: {', '.join(left)}")
