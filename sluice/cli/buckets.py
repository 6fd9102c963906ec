"""``sluice buckets``: the buckets of the installation, and what each of them holds."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import render
from sluice.cli import frame
from sluice.errors import WrongUsage


def buckets(
    what: Annotated[
        str | None, typer.Argument(metavar="[WHAT]", help="data, code or logs: print this address alone, for scripts.")
    ] = None,
    as_json: frame.Json = False,
) -> None:
    """Show where code, data, run contexts and logs go."""
    if what not in (None, "data", "code", "logs"):
        raise WrongUsage(f"expected data, code or logs, got {what!r}", "WHAT", "sluice buckets shows all")
    answer = frame.connect().get("/v1/health")
    if as_json:
        render.machine({"lake": answer["lake"], "control": answer["control"]})
        return
    lake, control = f"s3://{answer['lake']}/", f"s3://{answer['control']}/"
    if what is not None:
        print(lake if what == "data" else f"{control}{what}/")
        return
    rows: list[tuple[render.Cell, ...]] = [
        ("data", lake, "datasets with `bucket: lake`; new objects here are noticed"),
        ("code", f"{control}code/", "what sluice upload sends; name it as entry_point"),
        ("run contexts", f"{control}context/", "one document for each run, which the job reads"),
        ("logs", f"{control}logs/", "logs of EMR Serverless, which sluice logs prints"),
        ("large data", f"{control}data/", "data of messages, unless the app has a data_bucket"),
        ("deployments", f"{control}deployments/", "each document that was deployed"),
    ]
    render.table(render.stdout(), ("WHAT", "WHERE", "USE…"), rows)
