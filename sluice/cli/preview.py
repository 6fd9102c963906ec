"""``sluice preview``: the next fires of a schedule, and its next periods."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render, wording, zones
from sluice.cli import frame
from sluice.names import SCHEDULE


def preview(
    schedule: Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")],
    count: Annotated[
        int, typer.Option("--count", "-c", min=1, max=1_000, metavar="N", help="How many fires.", show_default=True)
    ] = 10,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Show the next fires and periods of a schedule; of a disabled one, as if it were enabled now."""
    full = names.full_name(SCHEDULE, schedule, namespace, app)
    answer = frame.connect().get(f"{names.path_of(SCHEDULE, full)}/preview", {"count": count})
    if as_json:
        render.machine(answer)
        return
    console = render.stdout()
    render.title(console, "schedule", full)
    events, per_fire = answer.get("fires_per_day"), answer.get("events_per_fire", 1)
    render.fields(console, [("trigger", answer.get("description")), *wording.a_day(events, per_fire)])
    periods = answer.get("periods") or ()  # an older API has none
    if periods:
        now = frame.now()
        lines: list[tuple[render.Cell, ...]] = [
            (
                each["label"],
                f"{each['need']:,}" if each["need"] is not None else None,
                wording.exact(each["complete_from"]),
                wording.ago(each["complete_from"], now),
            )
            for each in periods
        ]
        console.print()
        render.table(console, ("PERIOD", "PARTITIONS", "COMPLETE FROM", "IN"), lines, indent=2)
    if not answer["items"]:
        if periods:
            return
        render.note("no fire is planned: no time triggers it, or its fires are over")
        return
    now, dues = frame.now(), answer.get("due") or answer["items"]
    zone = answer.get("zone", "UTC")  # an older API has none
    skipped = answer.get("skipped") or ()  # an older API has none
    local = zones.zone(zone) if zone != "UTC" else None
    fires: list[tuple[render.Cell, ...]] = [
        (
            str(number),
            wording.exact(at),
            wording.wall(at, local) if local is not None else None,
            wording.ago(due, now) if at not in skipped else render.dim("skipped"),
            wording.exact(due) if due != at else None,
        )
        for number, (at, due) in enumerate(zip(answer["items"], dues, strict=True), 1)
    ]
    console.print()
    render.table(console, ("#", "FIRE", zone, "IN", "DUE"), fires, indent=2)
