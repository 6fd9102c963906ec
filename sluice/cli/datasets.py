"""``sluice datasets``: the datasets of a namespace, or the partitions of one; show or register a partition."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sluice import names, render, wording
from sluice.cli import frame, tables
from sluice.errors import WrongUsage
from sluice.names import DATASET

LIST = "list"


class WithoutList(TyperGroup):
    """``sluice datasets NAME`` is short for ``sluice datasets list NAME``."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [LIST, *args])


app = typer.Typer(
    cls=WithoutList, help="List datasets, or the partitions of one dataset. NAME, or list, show, register."
)


@app.command(LIST)
def datasets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show the partitions of this dataset.")] = None,
    namespace: frame.Namespace = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List datasets, or the partitions of one dataset."""
    if name is None:
        path = names.collection_path(DATASET, [frame.needed_namespace(namespace)])
    else:
        path = f"{names.path_of(DATASET, names.full_name(DATASET, name, namespace))}/partitions"
    client = frame.connect()
    answer = client.listing(path, most=limit or None)
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items:
        render.note("no partition is registered yet" if name else "no datasets here")
        for line in tables.ignored(client.get(path.removesuffix("/partitions"))) if name else ():
            render.note(f"in no partition: {line}")
    elif name is None:
        tables.definitions(render.stdout(), DATASET, items, frame.now())
    else:
        tables.partitions(render.stdout(), items, frame.now())
    tables.rest(answer, len(items), "sluice datasets ...")


Name = Annotated[str, typer.Argument(metavar="NAME", help="A dataset, such as demo.flights.")]
Partition = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE", help="One for each key, such as year=2013 month=1 day=4.")
]


@app.command()
def show(
    name: Name,
    partition: Partition,
    namespace: frame.Namespace = None,
    as_json: frame.Json = False,
) -> None:
    """Show the runs that made a partition, those that used it, and who waits for it."""
    full = names.full_name(DATASET, name, namespace)
    client, given = frame.connect(), _values(partition)
    path = names.path_of(DATASET, full)
    keys = client.get(path)["keys"]
    if set(given) != set(keys):
        raise WrongUsage(f"expected a value for each of {', '.join(keys)}, got {', '.join(given)}", "KEY=VALUE")
    view = client.get(f"{path}/partition", {"values": "/".join(given[key] for key in keys)})
    if as_json:
        render.machine(view)
        return
    console, now = render.stdout(), frame.now()
    ready = f"ready {wording.ago(view['ready_at'], now)}" if view["ready_at"] else "not registered"
    render.title(console, "partition", wording.pairs(view["partition"]), ready)
    rows: list[tuple[render.Cell, ...]] = [
        (did, run["run_id"], run["state"], wording.ago(run["at"], now), run["backfill"])
        for did, runs in (("made by", view["made_by"]), ("used by", view["runs"]))
        for run in runs
    ]
    rows += [("waiting", job["job_id"], job["state"], None, None) for job in view["waiting"]]
    render.table(console, ("HOW", "RUN OR JOB", "STATE", "CLAIMED", "BACKFILL"), rows, indent=2)
    ended = [(each["schedule"], each["kind"], wording.ago(each["at"], now), each["reason"]) for each in view["ended"]]
    if ended:
        render.table(console, ("DID NOT RUN", "RECORD", "AT", "WHY…"), ended, indent=2)


@app.command()
def register(
    name: Name,
    partition: Partition,
    namespace: frame.Namespace = None,
    as_json: frame.Json = False,
) -> None:
    """Register a partition as ready; it counts once, however often it is registered."""
    full = names.full_name(DATASET, name, namespace)
    answer = frame.connect().register_partition(full, _values(partition))
    if as_json:
        render.machine(answer)
        return
    values = "/".join(f"{key}={value}" for key, value in answer["partition"].items())
    render.note(f"{full} has partition {values} since {answer['ready_at']}")


def _values(texts: list[str]) -> dict[str, str]:
    """The values by their keys, from ``year=2013 month=1`` or ``year=2013/month=1``."""
    found: dict[str, str] = {}
    for text in (part for given in texts for part in given.split("/")):
        key, equals, value = text.partition("=")
        if not key or not equals or not value:
            raise WrongUsage(f"expected KEY=VALUE, got {text!r}", "KEY=VALUE", "such as year=2013 month=1 day=4")
        if key in found:
            raise WrongUsage(f"expected each key once, got {key} twice", "KEY=VALUE")
        found[key] = value
    return found
