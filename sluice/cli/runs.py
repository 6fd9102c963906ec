"""``sluice runs``: list runs, show one with its attempts, cancel, ping and repeat it, read its log."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import Console
from rich.text import Text

from sluice import names, render, wording
from sluice.cli import filters, frame, logs, reprocess, search, tables
from sluice.client import Client, Document, segment
from sluice.errors import ApiRefused, WrongUsage
from sluice.names import WORKFLOW

app = typer.Typer(no_args_is_help=True, help="List runs; show one with its attempts, cancel it, run it again.")

INSTANTS = (
    ("nominal_at", "nominal"),
    ("created_at", "job created"),
    ("accepted_at", "trigger met"),
    ("claimed_at", "claimed"),
    ("start_requested_at", "start requested"),
    ("started_at", "started"),
    ("ended_at", "ended"),
)


@app.command("list")
def list_runs(
    namespace: frame.Namespace = None,
    app_name: filters.OfApp = None,
    schedule: frame.OfSchedule = None,
    workflow: filters.OfWorkflow = None,
    target: filters.OfTarget = None,
    tag: filters.OfTag = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Only runs in this state, such as FAILED.")
    ] = None,
    text: filters.Text = None,
    late: filters.Late = False,
    day: frame.Day = None,
    since: filters.Since = None,
    until: filters.Until = None,
    cost: Annotated[
        bool, typer.Option("--cost", metavar="", help="Show what each run has cost so far, and the sum.")
    ] = False,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List runs, newest first. The sent events of a large fire are one line; ``sluice fires`` opens it."""
    if cost and as_json:
        raise WrongUsage("expected one of --cost and --json, got both", "--cost", "billed of each run has its cost")
    full = None if workflow is None else filters.workflow_name(workflow, *names.place(namespace, app_name))
    if full is not None and schedule is None:
        namespace = full.partition(".")[0]  # that of the workflow, whose runs may be of other namespaces
    place, now, maximum = filters.place_of(namespace, app_name, schedule), frame.now(), limit or None
    given: filters.Given = {"workflow": full, "target": target, "tag": tag, "text": text, "late": late}
    asked = filters.rows_of(place, now, **given, day=day, since=since, until=until)
    if state is not None:
        asked["state"] = state.upper()
    path = f"{place.path}/runs"
    if full is not None and not place.of_schedule:
        del asked["workflow"]
        path = f"{names.path_of(WORKFLOW, full)}/runs"  # the API has a list of them
    found = search.search(frame.connect(), path, asked, maximum, hide=not (schedule or workflow or everything))
    nothing = "no runs match" if asked else "no runs yet"
    if items := tables.searched(found, maximum, as_json, nothing):
        tables.runs(render.stdout(), items, now, cost=cost)
        tables.rest(found.answer, len(items), "sluice runs list ...")
        if cost:
            _note_cost([run.get("billed") for run in items])


def _note_cost(billed: list[Document | None]) -> None:
    """Say what the listed runs have cost, and how many of them have no bill, which comes a while after the end."""
    known = [float(bill["cost_usd"]) for bill in billed if bill is not None and bill.get("cost_usd") is not None]
    unknown = len(billed) - len(known)
    without = f"; {wording.count(unknown, 'run')} without a bill" if unknown else ""
    render.note(f"{wording.count(len(known), 'run')} cost ${sum(known):.4f} at list price{without}")


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a run, the same as that of its job.")],
    as_json: frame.Json = False,
) -> None:
    """Show a run: its attempts, instants, and what triggered it."""
    run = frame.connect().get(f"/v1/runs/{segment(run_id)}")
    if as_json:
        render.machine(run)
        return
    console = render.stdout()
    render.title(console, "run", run["run_id"], render.state(run.get("state")))
    _show_facts(console, run)
    _show_instants(console, run)
    history = run.get("history") or [run]
    if len(history) > 1:
        _show_attempts(console, history)
    if run.get("events"):
        _show_events(console, run["events"])


def _dag(dag: Document | None) -> str | None:
    """The node and the DAG run to which a run belongs; None if it belongs to none."""
    if dag is None:
        return None
    part = f"node {dag['node']}" if dag.get("node") else "the start"
    return f"{part} of {dag['name']}, run {dag['run_id']}, round {dag['round']}"


def _show_facts(console: Console, run: Document) -> None:
    target = run.get("target") or {}
    now = frame.now()
    render.fields(
        console,
        [
            ("reason", run.get("reason")),
            ("fired by", run.get("fired_by")),
            ("requested by", run.get("requested_by")),
            ("partition", wording.pairs(run.get("partition") or run.get("correlation"))),
            ("dag", _dag(run.get("dag"))),
            ("number", None if run.get("number") is None else str(run["number"])),
            ("fire", run.get("fire")),
            ("event", place(run)),
            ("sends", sends(run.get("sends"))),
            ("registered", registered(run.get("registered", []))),
            ("attempt", tables.attempt(run)),
            ("waited for", run.get("waited_for")),
            ("billed", _billed(run.get("billed"))),
            ("deadline", _deadline(run)),
            ("waited", wording.duration(wording.waited(run))),
            ("took", wording.duration(wording.took(run, now))),
            ("workflow", run.get("workflow")),
            ("properties", wording.pairs(run.get("properties"), " ")),
            ("target", target.get("entry_point") or target.get("queue_url") or target.get("pool")),
            ("target's id", run.get("target_id")),
            ("metrics", wording.pairs(run.get("metrics"))),
            ("result", json.dumps(run["result"], ensure_ascii=False) if "result" in run else None),
            ("result refused", run.get("result_refused")),
            ("again of", run.get("rerun_of")),
            ("priority", None if run.get("priority") is None else str(run["priority"])),
            ("context", run.get("context")),
        ],
    )


def place(run: Document) -> str | None:
    """``7 of 500``: the place of an event among those of its fire, or how many of them a run stands for."""
    spread = run.get("spread")
    if spread is None:
        return None
    of = "" if spread["count"] is None else f" of {spread['count']:,}"
    many = run.get("count", 1) > 1
    return f"{run['count']:,}{of}, from {spread['index']:,} on" if many else f"{spread['index']:,}{of}"


def registered(found: list[Document]) -> str | None:
    """The partitions that the success of a run has registered, or why there is none of a dataset."""
    shown = [
        f"{wording.entry(each['partition'])} of {each['dataset']}" if each["partition"] else each["why"]
        for each in found
    ]
    return ", ".join(shown) or None


def sends(known: Document | None) -> str | None:
    """The first and the last send of the events of a fire, and how late they were."""
    if known is None:
        return None
    late = (wording.duration(known[name] / 1000) for name in ("late_p50", "late_max"))
    return f"{wording.exact(known['first'])} to {wording.exact(known['last'])}, late: p50 {', max '.join(late)}"


def _deadline(run: Document) -> str | None:
    """``to start by 2026-11-20 12:05:00.000 UTC, to end by ...``."""
    due = (("start_by", "to start by"), ("end_by", "to end by"))
    return ", ".join(f"{word} {wording.exact(run[key])}" for key, word in due if run.get(key)) or None


# The parts of a bill, as a run's page shows them.
_UNITS = {
    "vcpu_hours": "vCPU-hours",
    "memory_gb_hours": "GB-hours",
    "storage_gb_hours": "GB-hours of storage",
    "dpu_hours": "DPU-hours",
    "scanned_gb": "GB scanned",
}


def _billed(hours: dict[str, float] | None) -> str | None:
    """``0.067 vCPU-hours, 0.183 GB-hours: $0.0046 at list price``."""
    if hours is None:
        return None
    used = ", ".join(f"{hours[name]:g} {unit}" for name, unit in _UNITS.items() if hours.get(name))
    return f"{used or 'nothing'}: ${hours['cost_usd']:.4f} at list price"


def _show_instants(console: Console, run: Document) -> None:
    """Show the instant of each step, and the time since the step before."""
    known = sorted(((run[key], word) for key, word in INSTANTS if run.get(key)), key=lambda step: str(step[0]))
    rows: list[tuple[render.Cell, ...]] = []
    for at, (instant, word) in enumerate(known):
        step = wording.between(known[at - 1][0], instant) if at else None
        after = None if step is None else f"+ {wording.duration(step)}"
        rows.append((word, wording.exact(instant), wording.ago(instant, frame.now()), after))
    render.heading(console, "Instants")
    render.table(console, ("STEP", "AT", "", "AFTER"), rows, indent=2)


def _show_attempts(console: Console, history: list[Document]) -> None:
    now = frame.now()
    rows: list[tuple[render.Cell, ...]] = [
        (
            str(run.get("attempt")),
            render.state(run.get("state")),
            wording.ago(run.get("started_at") or run.get("start_requested_at"), now),
            wording.duration(wording.waited(run)),
            wording.duration(wording.took(run, now)),
            run.get("target_id"),
            run.get("reason"),
        )
        for run in history
    ]
    render.heading(console, "Attempts")
    render.table(console, ("#", "STATE", "STARTED", "WAITED", "TOOK", "TARGET'S ID", "REASON…"), rows, indent=2)


def _show_events(console: Console, events: list[Document]) -> None:
    once = list({event.get("id") or str(event): event for event in events}.values())
    timed = any("period" in event for event in once)
    rows: list[tuple[render.Cell, ...]] = [
        (
            event.get("kind"),
            event.get("dataset") or event.get("workflow") or event.get("type"),
            wording.pairs(event.get("partition")),
            *((wording.period(event.get("period")),) if timed else ()),
            event.get("status"),
            _source(event),
        )
        for event in once
    ]
    render.heading(console, f"Events ({len(once)})")
    header = ("KIND", "OF", "PARTITION", *(("PERIOD",) if timed else ()), "STATUS", "SOURCE…")
    render.table(console, header, rows, indent=2)


def _source(event: Document) -> str:
    """Where an event comes from, then its payload as JSON."""
    source = event.get("path") or event.get("run_id")
    return ", ".join(part for part in (source, *_own_fields(event)) if part) or wording.NOTHING


def _own_fields(event: Document) -> list[str]:
    """The fields of an event without a column of their own, such as the state of an alarm or the payload of a custom
    event. Also those of kinds of events that this command does not know."""
    common = ("kind", "id", "instant", "dataset", "workflow", "type", "partition", "period", "status", "path", "run_id")
    rest = {name: value for name, value in event.items() if name not in common and value not in (None, {}, [])}
    return [f"{name}={_value(value)}" for name, value in rest.items()]


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a run, the same as that of its job.")]


@app.command()
def cancel(run_id: Id, as_json: frame.Json = False) -> None:
    """Cancel an active run; Sluice asks its target until the run has ended. The run of a DAG ends with its nodes."""
    run = frame.connect().post(f"/v1/runs/{segment(run_id)}/cancel", repeatable=True)
    if as_json:
        render.machine(run)
        return
    dag = run.get("dag") or {}
    if dag and dag["node"] is None:
        render.note(f"the run of DAG {dag['name']} is being cancelled: sluice dags show {dag['name']} {run_id}")
        return
    render.note(f"{run_id} is being cancelled; it is {run['state']} until its target has ended it")


@app.command()
def ping(run_id: Id, as_json: frame.Json = False) -> None:
    """Poll the target of an active run now."""
    run = frame.connect().post(f"/v1/runs/{segment(run_id)}/ping", repeatable=True)
    if as_json:
        render.machine(run)
        return
    render.note(f"{run_id} is {run['state']}; its target is being polled; see sluice runs show {run_id}")


@app.command()
def rerun(
    run_id: Id,
    downstream: Annotated[
        bool, typer.Option("--downstream", metavar="", help="Then run everything downstream again, in order.")
    ] = False,
    only: Annotated[bool, typer.Option("--only", metavar="", help="Start nothing downstream.")] = False,
    as_json: frame.Json = False,
) -> None:
    """Run a finished run again, with its properties, data and context.

    Properties that the app has been given since do not count. For these, use ``sluice run NAME --partition`` or
    ``sluice reprocess``.

    A terminal asks what is to become of the schedules that follow it. Without a terminal and without an option, its
    status counts for them as the status of any run does.
    """
    if downstream and only:
        raise WrongUsage("expected one of --only and --downstream, got both", "--only")
    client = frame.connect()
    scope = "downstream" if downstream else "only" if only else None
    if scope is None and not as_json and sys.stdin.isatty():
        scope = _asked_scope(client, run_id)
    if scope is not None:
        _reprocess(client, run_id, scope, as_json)
        return
    answer = client.post(f"/v1/runs/{segment(run_id)}/rerun", key=uuid4().hex)
    if as_json:
        render.machine(answer)
        return
    render.note(f"runs again as {answer['job_id']}")


def _reprocess(client: Client, run_id: str, scope: str, as_json: bool) -> None:
    body = {"run": run_id, "scope": scope}
    answer = client.post(reprocess.path_of(run_id.partition(".")[0]), body, key=uuid4().hex)
    if as_json:
        render.machine(answer)
        return
    print(answer["reprocess_id"])
    if render.stderr().is_terminal:
        render.note(f"sluice reprocess show {answer['reprocess_id']} -n {answer['namespace']} --wait")


def _asked_scope(client: Client, run_id: str) -> str | None:
    """What the user wants to become of the downstream; None if there is none, as for a node of a DAG. Ends the command
    with exit code 1 if the user wants nothing to run."""
    try:
        plan = client.post(reprocess.path_of(run_id.partition(".")[0]), {"run": run_id, "dry_run": True})
    except ApiRefused as refusal:
        if (refusal.code, refusal.field) == ("invalid", "run"):
            return None
        raise
    following = len({step["schedule"] for step in plan["steps"]}) - 1
    if following < 1:
        return None
    console = render.stderr()
    reprocess.show_plan(plan, console)
    verb = "follows" if following == 1 else "follow"
    question = f"{wording.count(following, 'schedule')} {verb} this run: run "
    choices = (("d", "bold"), "ownstream too, ", ("o", "bold"), "nly this run, or ", ("N", "bold"), "othing? ")
    console.print(Text.assemble(question, *choices), end="", soft_wrap=True)
    answer = sys.stdin.readline().strip().lower()
    if answer in ("d", "downstream"):
        return "downstream"
    if answer in ("o", "only"):
        return "only"
    render.note("nothing was changed")
    raise typer.Exit(1)


app.command("logs")(logs.logs)
