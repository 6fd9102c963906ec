"""``sluice init``: a first app with a job and sample data, and the commands that run it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import frame
from sluice.errors import WrongUsage

TEMPLATES = Path(__file__).parents[1] / "first_app"
JOB = "jobs/daily_sales.py"
# Each day has orders of its own: number, product, quantity, price.
DAYS = {
    "2026-01-05": ("1001,tea,2,4.50", "1002,coffee,1,7.90", "1003,tea,1,4.50", "1004,cocoa,3,5.20"),
    "2026-01-06": ("1005,coffee,2,7.90", "1006,coffee,1,7.90", "1007,cocoa,1,5.20"),
    "2026-01-07": ("1008,tea,5,4.50", "1009,cocoa,2,5.20", "1010,coffee,1,7.90", "1011,tea,1,4.50"),
}
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where the files go; it need not exist.")] = Path("."),
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Write a first app with a job and sample data, and print the commands that run it.

    It sends nothing, and it never overwrites a file.
    """
    in_namespace, in_app = names.place(namespace, app)
    space, name = in_namespace or "demo", in_app or "orders"
    for option, given in (("--namespace", space), ("--app", name)):
        if not NAME.fullmatch(given):
            hint = "such as -n demo -a orders"
            raise WrongUsage(f"expected a name of lower-case letters, digits, - and _, got {given!r}", option, hint)
    files = {folder / path: text for path, text in _files(space, name)}
    present = sorted(str(path) for path in files if path.exists())
    if present:
        hint = "name a folder that does not exist: sluice init first-app"
        raise WrongUsage(f"expected a folder without these files, got {', '.join(present)}", "DIR", hint)
    for path, text in files.items():
        _write(path, text)
    commands = _commands(folder, space, name)
    if as_json:
        render.machine({"app": f"{space}.{name}", "files": [str(path) for path in files], "commands": commands})
        return
    for path in files:
        print(path)
    render.note("\nRun it with these commands. A job takes about 20 s in the local cloud.")
    for command in commands:
        print(f"  {command}")


def _files(namespace: str, app: str) -> Iterator[tuple[str, str]]:
    """The files below the folder, and what is in them."""
    document = (TEMPLATES / "app.yaml.txt").read_text(encoding="utf-8")
    yield "app.yaml", document.replace("NAMESPACE", namespace).replace("APP", app)
    yield JOB, (TEMPLATES / "daily_sales.py.txt").read_text(encoding="utf-8")
    for day, orders in DAYS.items():
        yield f"orders/day={day}/orders.csv", "\n".join(["order_id,product,quantity,price", *orders, ""])
        yield f"orders/day={day}/_SUCCESS", ""


def _commands(folder: Path, namespace: str, app: str) -> list[str]:
    """What a user types: the code first, then the app, then the data that starts the job."""
    full = f"{namespace}.{app}"
    return [
        *([] if os.environ.get("SLUICE_API_URL") else ["source .local/endpoints.env"]),
        *([] if folder == Path(".") else [f"cd {shlex.quote(str(folder))}"]),
        f"sluice apply app.yaml --set job=$(sluice upload {JOB} --app {full})",
        f"sluice upload orders --to s3://lake/{namespace}/{app}/orders/",
        f"sluice runs list -s {full}.daily_sales",
        f"sluice why schedule {full}.daily_sales",
    ]


def _write(path: Path, text: str) -> None:
    """Write a new file. Raises ``WrongUsage`` if it has come into being meanwhile, or cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise WrongUsage(f"expected a file that can be written, got {path}: {error.strerror}", "DIR") from None
