"""``sluice backfill``: run a schedule for the past, show the progress, and cancel it (L12)."""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sluice import checks, names, render, wording
from sluice.cli import filters, frame, search, tables, watch
from sluice.client import Client, Document, segment
from sluice.errors import WrongUsage
from sluice.names import SCHEDULE

app = typer.Typer(no_args_is_help=True, help="Run a schedule for the past: begin, list, show and cancel backfills.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a backfill.")]
COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")
MAX_LISTED = 40  # entries of a dry run that are printed; --json has more


class Only(StrEnum):
    all = "all"
    missing = "missing"
    failed = "failed"


@app.command()
def begin(
    schedule: Name,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHEN|PARTITION",
            help="2026-01-01, an instant, or year=2013/month=1; a period: day=2026-01-01.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="WHEN|PARTITION", help="The end: an instant is excluded, a partition is included."
        ),
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            "--partition", metavar="PARTITION", help="A partition, registered or not, or a period; repeatable."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="The dataset, if the schedule waits for several.")
    ] = None,
    only: Annotated[
        Only, typer.Option("--only", help="What of the range runs; what waits or runs now never does.")
    ] = Only.all,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, metavar="N", help="How many runs at a time.", show_default=True)
    ] = 1,
    newest_first: Annotated[bool, typer.Option("--newest-first", metavar="", help="Start with the newest.")] = False,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property of these runs only; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Show what would run; start nothing.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", metavar="", help="Wait for its end; exit 1 unless every run succeeds.")
    ] = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run a schedule for a past interval, for partitions or for periods; print the backfill's id."""
    if wait and dry_run:
        raise WrongUsage("expected one of --wait and --dry-run, got both", "--wait")
    path = _path(schedule, namespace, app_name)
    body: Document = {
        **_what(since, until, partitions or [], dataset),
        "only": only.value,
        "concurrency": concurrency,
        "order": "newest" if newest_first else "oldest",
        "properties": frame.pairs_of("--property", properties or []),
        "dry_run": dry_run,
    }
    # The key makes a repeat after a lost answer the same backfill.
    client = frame.connect()
    answer = client.post(path, body, key=uuid.uuid4().hex)
    if wait and not dry_run:
        _follow(client, f"{path}/{segment(answer['backfill_id'])}", answer, as_json)
    elif as_json:
        render.machine(answer)
    elif dry_run:
        _show_plan(answer)
    else:
        print(answer["backfill_id"])
        if render.stderr().is_terminal:
            render.note(f"sluice backfill show {answer['schedule']} {answer['backfill_id']}")


@app.command("list")
def list_backfills(
    schedule: Name,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    state: filters.OfState = None,
    since: filters.Since = None,
    until: filters.Until = None,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List the backfills of a schedule, newest first."""
    now, maximum = frame.now(), limit or None
    matches = filters.begun(state, filters.span(since, until, now))
    found = search.search(frame.connect(), _path(schedule, namespace, app_name), {}, maximum, matches=matches)
    items = tables.searched(found, maximum, as_json, "no backfills match" if matches else "no backfills yet")
    if not items:
        return
    rows: list[tuple[render.Cell, ...]] = [
        (
            item["backfill_id"],
            render.state(item["state"]),
            wording.ago(item["created_at"], now),
            f"{item['succeeded'] + item['failed'] + item['cancelled']}/{item['total']}",
            str(item["failed"]) if item["failed"] else None,
            wording.entry(item["first"]),
            wording.entry(item["last"]),
            item.get("reason"),
        )
        for item in items
    ]
    columns = ("BACKFILL", "STATE", "BEGUN", "DONE", "FAILED", "FIRST", "LAST", "REASON…")
    render.table(render.stdout(), columns, rows)
    tables.rest(found.answer, len(rows), "sluice backfill list ...")


@app.command()
def show(
    schedule: Name,
    backfill_id: Id,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Show the progress of a backfill, and its active runs."""
    answer = frame.connect().get(f"{_path(schedule, namespace, app_name)}/{segment(backfill_id)}")
    _show(answer, as_json)


@app.command()
def cancel(
    schedule: Name,
    backfill_id: Id,
    runs: Annotated[bool, typer.Option("--runs", metavar="", help="Also cancel active runs.")] = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Cancel a backfill: it starts no more runs. Active runs continue, unless --runs cancels them."""
    path = f"{_path(schedule, namespace, app_name)}/{segment(backfill_id)}/cancel"
    # Repeatable: the request is idempotent.
    answer = frame.connect().request("POST", path, {}, {"runs": "cancel" if runs else None}, repeatable=True).body
    _show(answer, as_json)


def _follow(client: Client, path: str, begun: Document, as_json: bool) -> None:
    """Wait for the end of a backfill. Exit code 1 unless every run of it succeeded."""
    identity, name = str(begun["backfill_id"]), str(begun["schedule"])
    if not as_json:
        print(identity, flush=True)
    try:
        view = watch.until_over(client, path, name, quiet=as_json)
    except KeyboardInterrupt:
        render.note(f"stopped waiting; the backfill continues: sluice backfill show {name} {identity}")
        raise typer.Exit(130) from None
    if as_json:
        render.machine(view)
    else:
        counted = Text.assemble(render.state(view["state"]), f"  {watch.counts(view)}")
        render.stdout().print(counted, soft_wrap=True)
    if view["state"] != "DONE" or view["succeeded"] < view["total"]:
        raise typer.Exit(1)


def _path(schedule: str, namespace: str | None, app_name: str | None) -> str:
    return f"{names.path_of(SCHEDULE, names.full_name(SCHEDULE, schedule, namespace, app_name))}/backfills"


def _what(since: str | None, until: str | None, named: list[str], dataset: str | None) -> Document:
    """The interval or the partitions of a backfill. A text with an equal sign is a partition."""
    if named and (since or until):
        hint = "leave out one of them"
        raise WrongUsage("expected either --partition or --from and --to, got both", "--partition", hint)
    about_data = bool(named or dataset) or any(text is not None and "=" in text for text in (since, until))
    if not about_data:
        if since is None or until is None:
            hint = "--from 2026-01-01 --to 2026-02-01, --from year=2013/month=1, or --partition year=2013/month=1/day=5"
            got = "--from alone" if since else "--to alone" if until else "neither"
            raise WrongUsage(
                f"expected both ends of an interval, or --partition, got {got}", "--to" if since else "--from", hint
            )
        return {"from": checks.day_or_instant(since, "--from"), "to": checks.day_or_instant(until, "--to")}
    request: Document = {"dataset": dataset} if dataset else {}
    if named:
        request["values"] = [_values(text, "--partition") for text in named]
    if since is not None:
        request["from"] = _values(since, "--from")
    if until is not None:
        request["to"] = _values(until, "--to")
    return {"partitions": request}


def _values(text: str, option: str) -> dict[str, str]:
    return frame.pairs_of(option, text.strip("/").split("/"))


def _show_plan(plan: Document) -> None:
    console = render.stdout()
    render.title(console, "backfill of", plan["schedule"], wording.count(plan["total"], "run"))
    first, last = ([wording.entry(entry) for entry in plan[end]] for end in ("first", "last"))
    more = plan["total"] - len(first) - len(last)
    between = [f"({more} more)"] if more > 0 else []
    now = ", ".join(f"{many} {state}" for state, many in plan["now"].items() if many)
    render.fields(console, [("runs", "\n".join([*first, *between, *last]) or None), ("now", now)])
    _show_entries(console, plan)


def _show_entries(console: Console, plan: Document) -> None:
    """What became of each entry of the range so far, and what the backfill does with it."""
    render.heading(console, "The range now")
    shown = plan["entries"][:MAX_LISTED]
    rows: list[tuple[render.Cell, ...]] = [
        (
            wording.entry(each["entry"]),
            *([f"{each['have']} of {each['need']}"] if each.get("need") is not None else []),
            render.state(each["state"]),
            "runs" if each["runs"] else "left alone" if each["state"] in ("waiting", "running") else "-",
            each["run_id"],
            each["why"],
        )
        for each in shown
    ]
    parts = ("PARTS",) if shown and shown[0].get("need") is not None else ()
    render.table(console, ("OF", *parts, "NOW", "THEN", "LAST RUN", "WHY…"), rows, indent=2)
    more = sum(plan["now"].values()) - len(rows)
    if more > 0:
        render.note(f"{more} more; --json has up to 1,000")


def _show(view: Document, as_json: bool) -> None:
    if as_json:
        render.machine(view)
        return
    console, now = render.stdout(), frame.now()
    done = view["succeeded"] + view["failed"] + view["cancelled"]
    render.title(console, "backfill", view["backfill_id"], render.state(view["state"]), f"{done} of {view['total']}")
    counted = ", ".join(f"{view[what]} {what}" for what in COUNTS if view[what])
    facts: list[tuple[str, render.Cell]] = [
        ("schedule", view["schedule"]),
        ("reason", view.get("reason")),
        ("dataset", view.get("dataset")),
        ("runs", f"{wording.entry(view['first'])} to {wording.entry(view['last'])}, {view['concurrency']} at a time"),
        ("only", view["only"] if view["only"] != "all" else None),
        ("counts", counted),
        ("left alone", _named(view["in_flight"], view["left_alone"])),
        ("incomplete", _named(view.get("incomplete", []), view.get("left_out", 0))),
        ("next", wording.entry(view.get("position"))),
        ("properties", wording.pairs(view.get("properties"), "\n")),
        ("begun", f"{wording.both(view['created_at'], now)} by {view['created_by']}"),
        ("ended", wording.both(view.get("ended_at"), now)),
    ]
    render.fields(console, facts)
    _show_under_way(console, view["active"])
    tables.failures(console, view.get("failures"))


def _named(entries: list[Any], count: int) -> str | None:
    """The entries of the range that the backfill does not run: the first of them, and how many more."""
    named = [wording.entry(entry) for entry in entries]
    more = count - len(named)
    return "\n".join([*named, *([f"({more} more)"] if more > 0 else [])]) or None


def _show_under_way(console: Console, jobs: list[Document]) -> None:
    if jobs:
        render.heading(console, "Under way")
        rows: list[tuple[render.Cell, ...]] = [
            (job["job_id"], job["state"], wording.entry(job["entry"])) for job in jobs
        ]
        render.table(console, ("JOB", "STATE", "OF"), rows, indent=2)
