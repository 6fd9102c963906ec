"""What happened in an app under test, as one text: schedule by schedule what ran, what waits, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from chalicelib.core import ids
from chalicelib.core.instants import iso
from chalicelib.core.rows.schedule import ScheduleState
from sluice.testing import naming
from sluice.testing.seen import Run

if TYPE_CHECKING:
    from sluice.testing.app import App

_GRAPH = re.compile(r"~[0-9a-f]{8}\b(~)?")  # of a DAG, in the names of its nodes
MAX_LINES = 8  # of each kind of work of a schedule; the newest


def of_app(app: App) -> str:
    """A block of lines for each schedule and each DAG of the app's namespace."""
    prefix = f"{app.namespace}.{app.app}."
    blocks = []
    for name in sorted(naming.schedules_in(app.ports, app.namespace)):
        if ids.is_dag_node(name):
            continue
        lines = _of_dag(app, ids.dag_of(name)) if ids.is_of_dag(name) else _of_schedule(app, name)
        state = app.ports.rows.get(ScheduleState, name)
        mode = state.mode if state is not None else "deleted"
        blocks.append("\n".join([f"{naming.plain(name).removeprefix(prefix)}: {mode}", *_indented(lines)]))
    text = "\n\n".join([f"{app.namespace}.{app.app} at {iso(app.clock.now())}", *blocks])
    return _GRAPH.sub(lambda found: "/" if found[1] else "", text)


def _of_schedule(app: App, name: str) -> Iterator[str]:
    yield from _newest(map(_run, app.runs(name)), "earlier run")
    waiting = app.jobs(name)
    yield from _newest((f"waits: {_keyed(job.partitions)}{job.why}" for job in waiting), "more waiting job")
    yield from _newest(
        (f"{record.at:%Y-%m-%d %H:%M:%S} {record.kind}: {record.reason}" for record in app.records(name)),
        "earlier record",
    )
    if not waiting:
        yield f"why: {app.why(name)}"
    yield from (f"next fire: {at:%Y-%m-%d %H:%M:%S}" for at in app.next_fires(name))


def _of_dag(app: App, dag: str) -> Iterator[str]:
    for run in app.dag_runs(dag)[-MAX_LINES:]:
        yield f"{run.at:%Y-%m-%d %H:%M:%S} {run.state}: {_keyed([run.view['partition'] or {}])}{run.fired_by}"
        for name, node in run.view["nodes"].items():
            yield f"  {name} {node['state']}: {node['why'].text}"
    yield f"why: {app.why(ids.dag_start(dag))}"


def _run(run: Run) -> str:
    reason = run.reason or run.fired_by
    return f"{run.at:%Y-%m-%d %H:%M:%S} {run.state}: {_keyed(run.partitions)}{reason}"


def _keyed(partitions: list[dict[str, str]]) -> str:
    """The partitions of a piece of work, each once, before its reason."""
    texts = dict.fromkeys("/".join(f"{key}={value}" for key, value in each.items()) for each in partitions if each)
    shown = ", ".join([*texts][:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
    return f"{shown}: " if shown else ""


def _newest(lines: Iterable[str], noun: str) -> Iterator[str]:
    found = list(lines)
    left = len(found) - MAX_LINES
    if left > 0:
        yield f"{left} {noun}{'s' if left > 1 else ''}"
    yield from found[-MAX_LINES:]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
