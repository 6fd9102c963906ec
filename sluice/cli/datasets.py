"""``sluice datasets``: the datasets of a namespace, or the partitions of one; show or register a partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from sluice import names, render, wording
from sluice.cli import filters, frame, search, tables
from sluice.cli.lazy import LIST, ListFirst
from sluice.client import Document
from sluice.errors import WrongUsage
from sluice.names import DATASET

app = typer.Typer(
    cls=ListFirst, help="List datasets; datasets NAME lists the partitions of one. Show or register a partition."
)


@app.command(LIST)
def datasets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show the partitions of this dataset.")] = None,
    namespace: frame.Namespace = None,
    tag: filters.OwnTag = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Only whose name, or whose path, contains it.")
    ] = None,
    late: Annotated[
        bool,
        typer.Option("--late", metavar="", help="Only datasets that are not fresh, or partitions that came too late."),
    ] = False,
    since: filters.Since = None,
    until: filters.Until = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List datasets, or the partitions of one dataset. --since and --until are about when a partition was ready."""
    maximum = limit or None
    if name is None:
        path = names.collection_path(DATASET, [frame.needed_namespace(namespace)])
        if since is not None or until is not None:
            option = "--since" if since is not None else "--until"
            raise WrongUsage(f"expected {option} with the NAME of a dataset, got none", option, "name the dataset")
        matches = _datasets_that(filters.tag_of(tag), text, late)
    else:
        path = f"{names.path_of(DATASET, names.full_name(DATASET, name, namespace))}/partitions"
        if tag is not None:
            raise WrongUsage("expected --tag without NAME", "--tag", "partitions have no tags: leave it out")
        matches = _partitions_that(text, late, filters.span(since, until, frame.now()))
    client = frame.connect()
    found = search.search(client, path, {}, maximum, matches=matches)
    answer = {**found.answer, "items": found.answer["items"][:maximum]}
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items and (tag or text or late or since or until):
        render.note("no partition matches" if name else "no dataset matches")
    elif not items:
        render.note("no partition is registered yet" if name else "no datasets here")
        for line in tables.ignored(client.get(path.removesuffix("/partitions"))) if name else ():
            render.note(f"in no partition: {line}")
    elif name is None:
        tables.definitions(render.stdout(), DATASET, items, frame.now())
    else:
        tables.partitions(render.stdout(), items, frame.now())
    tables.rest(answer, len(items), "sluice datasets ...")


def _datasets_that(tag: str | None, text: str | None, late: bool) -> Callable[[Document], bool] | None:
    """Whether a dataset is wanted; None if all are."""
    if not (tag or text or late):
        return None
    return lambda view: (
        filters.has_tag(view, tag)
        and filters.has_text(view, text)
        and (not late or bool((view.get("freshness") or {}).get("late")))
    )


def _partitions_that(
    text: str | None, late: bool, span: Mapping[str, str | None]
) -> Callable[[Document], bool] | None:  # fmt: skip
    """Whether a partition is wanted; None if all are."""
    if not (text or late or any(span.values())):
        return None
    return lambda view: (
        (text is None or text.lower() in f"{wording.pairs(view['partition'])} {view.get('path')}".lower())
        and (not late or bool(view.get("late")))
        and filters.is_within(view.get("ready_at"), span)
    )


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
