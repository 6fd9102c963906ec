"""The command line ``sluice``: one module per group of commands, all based on the same client."""

from __future__ import annotations

import atexit
import gc

# A command imports much, and keeps all of it: the collector finds nothing there, and takes a tenth of the time. At the
# exit the interpreter would collect twice more, as long as all imports of `rich` take.
gc.set_threshold(50_000)
atexit.register(gc.freeze)

from typing import Annotated  # noqa: E402 - the imports are what takes time

import typer  # noqa: E402 - as above

from sluice.cli.frame import Commands  # noqa: E402 - as above
from sluice.cli.lazy import Entry  # noqa: E402 - as above

HELP = """Schedules for data workflows on AWS: deploy them, run them, and find out why they did or did not run.

[bold]SLUICE_API_URL[/bold] names the API. Requests are signed with your AWS credentials."""

EPILOG = """[bold]Examples[/bold]
  [cyan]source .local/endpoints.env[/cyan]                  [dim]# set the API address and credentials[/dim]
  [cyan]sluice apply app.yaml --set bucket=lake[/cyan]      [dim]# deploy an app[/dim]
  [cyan]sluice run demo.flights.clean --wait[/cyan]         [dim]# run a schedule now, and wait[/dim]
  [cyan]sluice why schedule demo.flights.clean[/cyan]       [dim]# show what it waits for[/dim]

[bold]Exit codes[/bold]
  0 success, 1 error from the server, 2 wrong usage, 3 server not reachable"""

DEFINE, ACT, LOOK, OPERATE = "Define", "Act", "Look", "Operate"

# Every command, in the order of the help. Its module is imported when it is used.
ENTRIES = (
    Entry(
        "init", "init:init", DEFINE, "Write a first app with a job and sample data, and print the commands that run it."
    ),
    Entry(
        "apply",
        "apply:apply",
        DEFINE,
        "Deploy apps: create and replace what the files contain, and delete what they no longer contain.",
    ),
    Entry(
        "convert",
        "convert:convert",
        DEFINE,
        "Convert schedules of another scheduler into an app document, and report what it does not carry over.",
    ),
    Entry(
        "validate",
        "validate:validate",
        DEFINE,
        "Check app documents offline, and report every problem with its file and line.",
    ),
    Entry("get", "get:get", DEFINE, "List definitions, or print one as YAML."),
    Entry("describe", "describe:describe", DEFINE, "Show one definition as a page, with its recent runs."),
    Entry("delete", "delete:delete", DEFINE, "Delete definitions; the API refuses while others refer to them."),
    Entry("message", "message:app", DEFINE, "Create, show, list and delete messages."),
    Entry("access", "access:access", DEFINE, "Show the members of a namespace and their roles, or replace them."),
    Entry("grants", "grants:grants", DEFINE, "Show what a namespace lets the documents of others use, or replace it."),
    Entry(
        "allowed",
        "allowed:allowed",
        DEFINE,
        "Show, propose or replace the allow-list of a namespace. Only administrators of the installation replace it.",
    ),
    Entry("quotas", "quotas:quotas", DEFINE, "Show the quotas of a namespace and what it uses, or replace them."),
    Entry(
        "prefixes",
        "prefixes:app",
        DEFINE,
        "List the owners of prefixes; give a prefix to a namespace, or take it back. For administrators.",
    ),
    Entry("upload", "upload:upload", DEFINE, "Upload code for the jobs of an app; print the address of each file."),
    Entry("enable", "schedules:enable", ACT, "Enable schedules: their triggers fire from now on."),
    Entry("disable", "schedules:disable", ACT, "Disable schedules; waiting jobs are dropped, active runs continue."),
    Entry("pause", "schedules:pause", ACT, "Pause schedules; resume continues them."),
    Entry("resume", "schedules:resume", ACT, "Resume paused schedules."),
    Entry(
        "stop",
        "stops:stop",
        ACT,
        "Stop schedules, DAGs, messages and backfills of a namespace, an app or a tag; what runs goes on.",
    ),
    Entry(
        "start",
        "stops:start",
        ACT,
        "Start what was stopped: what ran before runs again, what was paused or disabled stays so.",
    ),
    Entry("run", "run:run", ACT, "Run a schedule now or later, without its trigger; print the job's id."),
    Entry("skip", "occurrences:skip", ACT, "Skip one occurrence of a schedule."),
    Entry("unskip", "occurrences:unskip", ACT, "Cancel the skip of an occurrence."),
    Entry("event", "event:event", ACT, "Post custom events, which can trigger schedules."),
    Entry("backfill", "backfill:app", ACT, "Run a schedule for the past: begin, list, show and cancel backfills."),
    Entry(
        "reprocess",
        "reprocess:app",
        ACT,
        "Run partitions, a run or fires again with everything downstream: reprocess DATASET PARTITION. List, show and "
        "cancel what was begun.",
    ),
    Entry("worker", "worker:app", ACT, "Execute the runs of a pool on this machine."),
    Entry("dags", "dags:app", ACT, "List DAGs, show their runs by node, run, pause and cancel them, run parts again."),
    Entry("why", "why:app", LOOK, "Explain why a job, run, schedule or DAG did or did not start: why NAME, or why ID."),
    Entry(
        "local",
        "local:app",
        LOOK,
        "Make a queue, a topic or an HTTP address on the local cloud, and print each message that comes there.",
    ),
    Entry(
        "console",
        "console:console",
        LOOK,
        "Serve the web console on this machine, and open it in the browser; ctrl-c ends it.",
    ),
    Entry("open", "console:open_", LOOK, "Open the web console at one definition, job or run."),
    Entry("top", "top:top", LOOK, "Show live what runs, what waits and why, and the throughput; q or ctrl-c ends it."),
    Entry("now", "now:now", LOOK, "Show what waits by what holds it, what runs, and what is overdue."),
    Entry("schedules", "schedule_list:app", LOOK, "Find schedules of a namespace, also among thousands."),
    Entry("audit", "audit:audit", LOOK, "List who has changed what, and who was refused, newest first."),
    Entry("whoami", "whoami:whoami", LOOK, "Show who signs your requests, and which installation answers."),
    Entry(
        "preview",
        "preview:preview",
        LOOK,
        "Show the next fires and periods of a schedule; of a disabled one, as if it were enabled now.",
    ),
    Entry("dry-run", "dry_run:dry_run", LOOK, "Apply events to a schedule's trigger, and show what fires."),
    Entry("jobs", "jobs:app", LOOK, "List waiting jobs; cancel, approve or refuse one."),
    Entry("runs", "runs:app", LOOK, "List runs; show one with its attempts, cancel it, run it again."),
    Entry("periods", "periods:periods", LOOK, "Show the periods of a schedule, oldest first, and what became of each."),
    Entry("fires", "fires:fires", LOOK, "Show a fire of many events: how many were sent, and what became of each."),
    Entry("logs", "logs:logs", LOOK, "Print the last log lines of a run, or of the latest run of a schedule."),
    Entry(
        "records",
        "records:records",
        LOOK,
        "List work that was aborted, expired, skipped, dropped, coalesced or cancelled, newest first, and why.",
    ),
    Entry(
        "report",
        "report:report",
        LOOK,
        "Show the report of a day: runs, success, lateness, durations and cost of each workflow.",
    ),
    Entry("dead-letters", "dead_letters:app", LOOK, "List events that could not be delivered; redrive or drop them."),
    Entry("versions", "versions:versions", LOOK, "List the versions of a schedule, newest first."),
    Entry(
        "datasets",
        "datasets:app",
        LOOK,
        "List datasets; datasets NAME lists the partitions of one. Show or register a partition.",
    ),
    Entry(
        "policies",
        "policies:policies",
        LOOK,
        "List throttling policies. ``sluice describe policy NAME`` shows one with its queue.",
    ),
    Entry("pools", "pools:pools", LOOK, "List pools. ``sluice describe pool NAME`` shows one with its use."),
    Entry("buckets", "buckets:buckets", LOOK, "Show where code, data, run contexts and logs go."),
    Entry("freeze", "operations:freeze", OPERATE, "Freeze an installation: no Lambda of it begins until unfreeze."),
    Entry("unfreeze", "operations:unfreeze", OPERATE, "Unfreeze an installation: its Lambdas run again."),
    Entry(
        "export",
        "operations:export",
        OPERATE,
        "Export namespaces, with what is pending, into files that import reads.",
    ),
    Entry(
        "import",
        "operations:import_",
        OPERATE,
        "Import an export into an installation that has none of its namespaces.",
    ),
    Entry(
        "repair",
        "operations:repair",
        OPERATE,
        "Repair tables that were restored to different instants, and say what differs.",
    ),
)


class Sluice(Commands):
    entries = ENTRIES


app = typer.Typer(
    name="sluice",
    cls=Sluice,
    help=HELP,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"sluice {version('sluice')}")
        except PackageNotFoundError:
            print("sluice, from a source tree that is not installed")
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
