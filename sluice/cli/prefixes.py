"""``sluice prefixes``: to which namespaces the prefixes of a bucket belong; give a prefix, or take it back (O14)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import render
from sluice.cli import frame, search, tables
from sluice.client import segment
from sluice.errors import WrongUsage

app = typer.Typer(
    no_args_is_help=True,
    help="List the owners of prefixes; give a prefix to a namespace, or take it back. For administrators.",
)

Owner = Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace, such as demo.")]
Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="Such as s3://lake/raw/orders/.")]


@app.command("list")
def list_prefixes(
    bucket: Annotated[str, typer.Argument(metavar="[BUCKET]", help="The bucket; by default the lake.")] = "lake",
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Only whose prefix, owner or dataset contains it.")
    ] = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List the prefixes of a bucket with their owners. Only administrators of the installation may."""
    maximum = limit or None
    matches = (lambda item: any(text.lower() in str(value).lower() for value in item.values())) if text else None
    found = search.search(frame.connect(), "/v1/prefixes", {"bucket": bucket}, maximum, matches=matches)
    nothing = f"no prefix of {bucket} {'matches' if text else 'has an owner'}"
    if not (items := tables.searched(found, maximum, as_json, nothing)):
        return
    rows: list[tuple[render.Cell, ...]] = [
        (item["prefix"], item["namespace"], item["dataset"], "an administrator" if item["given"] else "its dataset")
        for item in items
    ]
    render.table(render.stdout(), ("PREFIX", "NAMESPACE", "DATASET", "BY"), rows)
    tables.rest(found.answer, len(items), "sluice prefixes list ...")


@app.command()
def give(
    namespace: Owner,
    address: Address,
    nested: Annotated[
        bool,
        typer.Option("--nested", metavar="", help="Also in a prefix of another namespace, or around one."),
    ] = False,
    as_json: frame.Json = False,
) -> None:
    """Give a prefix to a namespace, so that it may have datasets there."""
    body = {**_place(address), "nested": nested}
    answer = frame.connect().put(f"/v1/namespaces/{segment(namespace)}/prefixes", body)
    if as_json:
        render.machine(answer)
    else:
        render.note(f"s3://{answer['bucket']}/{answer['prefix']} belongs to namespace {answer['namespace']}")


@app.command()
def take(namespace: Owner, address: Address, as_json: frame.Json = False) -> None:
    """Take back a prefix that was given to a namespace; its datasets stay."""
    place = _place(address)
    frame.connect().request("DELETE", f"/v1/namespaces/{segment(namespace)}/prefixes", query=place)
    if as_json:
        render.machine({**place, "taken": True})
    else:
        render.note(f"{address} is no longer given to namespace {namespace}")


def _place(address: str) -> dict[str, str]:
    """The bucket and the prefix of an address; a prefix without a slash at its end gets one."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    if not address.startswith("s3://") or not bucket or not prefix:
        hint = "such as s3://lake/raw/orders/; for a whole bucket, add it to the list buckets: sluice allowed NAMESPACE"
        raise WrongUsage(f"expected s3://BUCKET/PREFIX/, got {address!r}", "ADDRESS", hint)
    return {"bucket": bucket, "prefix": prefix if prefix.endswith("/") else f"{prefix}/"}
