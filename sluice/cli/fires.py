"""``sluice fires``: a fire of many events in numbers, and its events."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import checks, render, states, wording
from sluice.cli import frame, runs, tables
from sluice.client import segment

COUNTS = ("sent", "failed", "retrying", "waiting", "dropped", "unknown")


def fires(
    fire_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a fire, as runs list prints it.")],
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Only events in this state, such as FAILED.")
    ] = None,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """Show a fire of many events: how many were sent, and what became of each.

    Without --state, it lists the events that have failed, else those that are tried again, else those that were
    dropped, else the first ones.
    """
    wanted = None if state is None else checks.one_of(state.upper(), states.OF_EVENTS, "--state")
    client = frame.connect()
    fire = client.fire(fire_id)
    if wanted is None and not as_json:
        wanted = next((name for name in ("FAILED", "RETRYING", "DROPPED") if fire[name.lower()]), None)
    path = f"/v1/fires/{segment(fire_id)}/events"
    events = client.listing(path, {"state": wanted}, limit or None)
    if as_json:
        render.machine({**fire, "items": events["items"], "next_cursor": events["next_cursor"]})
        return
    console = render.stdout()
    render.title(console, "fire", fire["id"], render.state(fire["state"]))
    at_least = "at least " if fire["at_least"] else ""
    render.fields(
        console,
        [
            ("schedule", fire["schedule"]),
            ("workflow", fire["workflow"]),
            ("nominal", wording.exact(fire["nominal_at"])),
            ("events", f"{fire['events']:,}"),
            *((name, f"{at_least}{fire[name]:,}" if fire[name] else None) for name in COUNTS),
            ("sends", runs.sends(fire["sends"])),
        ],
    )
    render.heading(console, "Events" if wanted is None else f"Events that are {wanted}")
    tables.fire_events(console, events["items"][: limit or None], frame.now(), indent=2)
    tables.rest(events, len(events["items"]), f"sluice fires {fire_id} ...")
