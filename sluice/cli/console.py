"""``sluice console`` and ``sluice open``: the web console, served on this machine with the user's own credentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from sluice import names, render
from sluice.cli import frame
from sluice.errors import ApiRefused, WrongUsage

if TYPE_CHECKING:
    from sluice.client import Client, Document
    from sluice.console.opening import Running

PORT = 8484

Port = Annotated[
    int, typer.Option("--port", min=1, max=65_535, metavar="PORT", help="The port on 127.0.0.1.", show_default=True)
]
ReadOnly = Annotated[bool, typer.Option("--read-only", metavar="", help="Forward only reads and dry runs.")]
NoOpen = Annotated[bool, typer.Option("--no-open", metavar="", help="Print the address; open no browser.")]


def console(
    namespace: frame.Namespace = None, port: Port = PORT, read_only: ReadOnly = False, no_open: NoOpen = False
) -> None:
    """Serve the web console on this machine, and open it in the browser; ctrl-c ends it."""
    _serve(frame.connect(), "/", namespace, port, read_only, no_open)


def open_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a definition, or the id of a job or run.")],
    namespace: frame.Namespace = None,
    app: frame.App = None,
    port: Port = PORT,
    no_open: NoOpen = False,
) -> None:
    """Open the web console at one definition, job or run.

    Uses the console that runs on the port, or starts one.
    """
    from sluice.console import opening

    client = frame.connect()
    view = _view(client, name, namespace, app)
    running = opening.running_console(port, client.url)
    if running is None:
        _serve(client, view, namespace, port, False, no_open)
        return
    _show(running, view, no_open)


def _view(client: Client, name: str, namespace: str | None, app: str | None) -> str:
    """The view of a definition, job or run. ``namespace`` and ``app`` complete a short name. Raises `WrongUsage` if
    nothing has this name."""
    from sluice.client import segment
    from sluice.console.opening import view_of

    if name.count(".") > 2:
        for collection in ("runs", "jobs"):
            if _found(client, f"/v1/{collection}/{segment(name)}") is not None:
                return view_of(collection, name)
    for kind, full in _meant(name, *names.place(namespace, app)):
        if (found := _found(client, names.path_of(kind, full))) is None:
            continue
        if kind is names.SCHEDULE and "~" in (own := str(found.get("name"))):
            if "/" not in full:  # the start of a DAG, whose own view comes later
                continue
            full = own
        return view_of(kind.collection, full)
    raise WrongUsage(
        f"expected the name of a definition, or the id of a job or run, got {name!r}",
        "NAME",
        "write a full name, such as demo.flights.clean; sluice get lists them",
    )


def _meant(name: str, namespace: str | None, app: str | None) -> Iterator[tuple[names.Kind, str]]:
    """The kinds of definitions that a name may mean, with their full names: as it is written, and completed. A name
    that begins with the namespace is full; any other one is short, if it can be."""
    parts = name.split(".")
    if not all(parts):
        return
    fronts: list[list[str]] = [[]]
    if namespace is not None:
        fronts.append([namespace])
    if namespace is not None and app is not None:
        fronts.append([namespace, app])
    if parts[0] != namespace:
        fronts.reverse()
    for front in fronts:
        full = [*front, *parts]
        fitting = [kind for kind in names.KINDS if len(kind.parts) == len(full)]
        # A schedule is what is opened most, and each kind that is tried costs a request.
        for kind in sorted(fitting, key=lambda kind: kind is not names.SCHEDULE):
            yield kind, ".".join(full)


def _found(client: Client, path: str) -> Document | None:
    try:
        return client.get(path)
    except ApiRefused as refused:
        if refused.status in (400, 404):  # 400: no name can be like that, such as one with a slash
            return None
        raise


def _serve(client: Client, view: str, namespace: str | None, port: int, read_only: bool, no_open: bool) -> None:
    from sluice.console import opening
    from sluice.console.access import new_token
    from sluice.console.files import Page
    from sluice.console.server import Console, Settings

    page = Page()
    settings = Settings(client.url, namespace, read_only)
    try:
        server = Console(port, new_token(), settings, page)
    except OSError as error:
        raise WrongUsage(
            f"expected a free port, got {port}: {error.strerror}",
            "--port",
            "end the other program, or choose another port; sluice open NAME uses a console that runs",
        ) from None
    running = opening.Running(port, server.access.token)
    try:
        _show(running, view, no_open)
        render.note("ctrl-c ends the console")
        server.serve_forever(poll_interval=0.5)
    except KeyboardInterrupt:
        render.note("the console has ended")
    finally:
        server.server_close()
        opening.remove_start_file(running)


def _show(running: Running, view: str, no_open: bool) -> None:
    """Open the browser, or print the address that the user opens."""
    from sluice.console import opening

    out = render.stdout()
    try:
        path = opening.write_start_file(running, view)
    except OSError as error:
        render.note(f"no browser is opened, because a file could not be written: {error}")
        no_open = True
    if no_open:
        out.print(Text(running.address(view)), soft_wrap=True)
    elif opening.open_browser(path):
        out.print(Text.assemble(("console ", "bold"), running.address(view).partition("#")[0]), soft_wrap=True)
    else:
        out.print(Text.assemble("no browser was found; open ", (path.as_uri(), "bold")), soft_wrap=True)
