"""The command line ``sluice``: one module per group of commands, all based on the same client."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from sluice.cli import (
    apply,
    backfill,
    buckets,
    convert,
    dags,
    datasets,
    dead_letters,
    delete,
    describe,
    dry_run,
    event,
    get,
    jobs,
    logs,
    message,
    occurrences,
    policies,
    pools,
    preview,
    records,
    report,
    reprocess,
    run,
    runs,
    schedules,
    upload,
    versions,
    why,
    worker,
)
from sluice.cli.frame import Commands

HELP = """Schedules for data workflows on AWS: deploy them, run them, and find out why they did or did not run.

[bold]SLUICE_API_URL[/bold] names the API. Requests are signed with your AWS credentials."""

EPILOG = """[bold]Examples[/bold]
  [cyan]source .local/endpoints.env[/cyan]                  [dim]# set the API address and credentials[/dim]
  [cyan]sluice apply app.yaml --set bucket=lake[/cyan]      [dim]# deploy an app[/dim]
  [cyan]sluice run demo.flights.clean --wait[/cyan]         [dim]# run a schedule now, and wait[/dim]
  [cyan]sluice why schedule demo.flights.clean[/cyan]       [dim]# show what it waits for[/dim]

[bold]Exit codes[/bold]
  0 success, 1 error from the server, 2 wrong usage, 3 server not reachable"""

app = typer.Typer(
    name="sluice",
    cls=Commands,
    help=HELP,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
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


# The help lists the groups in this order.
DEFINE, ACT, LOOK = "Define", "Act", "Look"
app.command(rich_help_panel=DEFINE)(apply.apply)
app.command(rich_help_panel=DEFINE)(convert.convert)
app.command(rich_help_panel=DEFINE)(get.get)
app.command(rich_help_panel=DEFINE)(describe.describe)
app.command(rich_help_panel=DEFINE)(delete.delete)
app.add_typer(message.app, name="message", rich_help_panel=DEFINE)
app.command(rich_help_panel=DEFINE)(upload.upload)
app.command(rich_help_panel=ACT)(schedules.enable)
app.command(rich_help_panel=ACT)(schedules.disable)
app.command(rich_help_panel=ACT)(schedules.pause)
app.command(rich_help_panel=ACT)(schedules.resume)
app.command(rich_help_panel=ACT)(run.run)
app.command(rich_help_panel=ACT)(occurrences.skip)
app.command(rich_help_panel=ACT)(occurrences.unskip)
app.command(rich_help_panel=ACT)(event.event)
app.add_typer(backfill.app, name="backfill", rich_help_panel=ACT)
app.add_typer(reprocess.app, name="reprocess", rich_help_panel=ACT)
app.add_typer(worker.app, name="worker", rich_help_panel=ACT)
app.add_typer(dags.app, name="dags", rich_help_panel=ACT)
app.add_typer(why.app, name="why", rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(preview.preview)
app.command("dry-run", rich_help_panel=LOOK)(dry_run.dry_run)
app.add_typer(jobs.app, name="jobs", rich_help_panel=LOOK)
app.add_typer(runs.app, name="runs", rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(logs.logs)
app.command(rich_help_panel=LOOK)(records.records)
app.command(rich_help_panel=LOOK)(report.report)
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(versions.versions)
app.command(rich_help_panel=LOOK)(datasets.datasets)
app.command(rich_help_panel=LOOK)(policies.policies)
app.command(rich_help_panel=LOOK)(pools.pools)
app.command(rich_help_panel=LOOK)(buckets.buckets)
