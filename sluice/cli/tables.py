"""The columns in which each kind of object is listed. Rows are the API's views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from sluice import render, wording
from sluice.cli import frame
from sluice.cli.search import Found
from sluice.client import Document
from sluice.names import APP, CALENDAR, DAG, DATASET, MESSAGE, NAMESPACE, POLICY, POOL, SCHEDULE, WORKFLOW, Kind

View = Mapping[str, Any]
Columns = tuple[str, ...]
Rows = list[tuple[render.Cell, ...]]


def definitions(console: Console, kind: Kind, items: Sequence[Any], now: datetime) -> None:
    views: list[View] = [item if isinstance(item, dict) else {"name": str(item)} for item in items]
    columns, rows = _DEFINITIONS[kind](views, now)
    render.table(console, columns, rows)


def _described(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [(v["name"], v.get("owner"), _changed(v, now), v.get("description")) for v in views]
    return ("NAME", "OWNER", "CHANGED", "DESCRIPTION…"), rows


def _workflows(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [
        (v["name"], _target_type(v), _number(v.get("priority")), _attempts(v), _changed(v, now), _entry(v))
        for v in views
    ]
    return ("NAME", "TARGET", "PRIORITY", "ATTEMPTS", "CHANGED", "RUNS…"), rows


def _datasets(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    aged = any(v.get("freshness") for v in views)
    rows: Rows = [
        (
            v["name"],
            "/".join(v.get("keys", ())),
            ready(v),
            *((fresh(v, now),) if aged else ()),
            _changed(v, now),
            location(v) or wording.NOTHING,
        )
        for v in views
    ]
    return ("NAME", "KEYS", "READY AT", *(("FRESH",) if aged else ()), "CHANGED", "LOCATION…"), rows


def _policies(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [
        (v["name"], _number(v.get("max_events")), v.get("interval"), _changed(v, now), v.get("description"))
        for v in views
    ]
    return ("NAME", "EVENTS", "PER", "CHANGED", "DESCRIPTION…"), rows


def _pools(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [
        (v["name"], _number(v.get("size")), v.get("unit"), _shares(v), _changed(v, now), v.get("description"))
        for v in views
    ]
    return ("NAME", "SIZE", "UNIT", "RESERVED", "CHANGED", "DESCRIPTION…"), rows


def _calendars(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [(v["name"], str(len(v.get("days", ()))), _changed(v, now), v.get("description")) for v in views]
    return ("NAME", "ENTRIES", "CHANGED", "DESCRIPTION…"), rows


def _shares(view: View) -> str:
    return wording.pairs({name: share.get("reserved") for name, share in (view.get("shares") or {}).items()})


def _schedules(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [(v["name"], render.state(v.get("state")), _changed(v, now), v.get("triggered_by")) for v in views]
    return ("NAME", "STATE", "CHANGED", "TRIGGERED BY…"), rows


def _dags(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [
        (v["name"], render.state(v.get("state")), str(len(v.get("nodes", ()))), _changed(v, now), v.get("description"))
        for v in views
    ]
    return ("NAME", "STATE", "NODES", "CHANGED", "DESCRIPTION…"), rows


def failures(console: Console, found: Sequence[View] | None) -> None:
    """The failed runs of a backfill or a re-processing, each with its error; nothing if there are none."""
    if found:
        render.heading(console, "Failed runs")
        rows: Rows = [(run["run_id"], _values(run.get("partition")), run["reason"]) for run in found]
        render.table(console, ("RUN", "OF", "REASON…"), rows, indent=2)


def dag_runs(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """Runs of a DAG: how many nodes have completed, and which node blocks the others, if any."""
    rows: Rows = []
    for run in items:
        nodes: View = run["nodes"]
        well = sum(node["state"] in ("SUCCEEDED", "SKIPPED") for node in nodes.values())
        bad = [f"{name} {node['state']}: {node['why']}" for name, node in nodes.items() if node["state"] in BAD]
        took = wording.duration(wording.between(run["started_at"], run.get("ended_at") or now.isoformat()))
        state, ago = render.state(run["state"]), wording.ago(run["started_at"], now)
        about = _values(run.get("partition"))
        late = render.state("LATE") if run.get("late") else None
        done = f"{well}/{len(nodes)}"
        rows.append((run["run_id"], state, late, ago, took, about, done, bad[0] if bad else None))
    render.table(console, ("RUN", "STATE", "LATE", "STARTED", "TOOK", "PARTITION", "DONE", "WHY…"), rows, indent)


BAD = ("FAILED", "CANCELLED", "ABORTED")


def _messages(views: Sequence[View], now: datetime) -> tuple[Columns, Rows]:
    rows: Rows = [
        (v["name"], wording.ago(v.get("next_fire"), now), times(v), _channel(v), _changed(v, now), v.get("description"))
        for v in views
    ]
    return ("NAME", "NEXT", "REPEATS", "GOES TO", "CHANGED", "DESCRIPTION…"), rows


def times(message: View) -> str:
    """When and how many times a message is sent, where known: ``@every 10s, 4 times``."""
    often = f", {wording.count(message['repeats'], 'time')}" if message.get("repeats") else ""
    return f"{message['schedule']}{often}" if message.get("schedule") else wording.NOTHING


def _channel(message: View) -> str:
    target = message.get("target") or {}
    return str(message.get("workflow") or target.get("type") or "default")


_DEFINITIONS = {
    NAMESPACE: _described,
    APP: _described,
    WORKFLOW: _workflows,
    DATASET: _datasets,
    SCHEDULE: _schedules,
    MESSAGE: _messages,
    POLICY: _policies,
    DAG: _dags,
    POOL: _pools,
    CALENDAR: _calendars,
}


def events(items: Sequence[View]) -> int:
    """How many jobs or runs these are, each event of a large fire counted."""
    return sum(int(item.get("count", 1)) for item in items)


def jobs(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """Jobs, or what ``why`` returns for them. An id begins with the name of its schedule, so that needs no column.
    Events of a large fire that share a job have their number behind its state."""
    rows: Rows = [
        (
            job["job_id"],
            _with_count(render.state(job.get("state")), job),
            _since(job.get("created_at") or job.get("since"), now),
            _values(job.get("correlation")),
            job.get("why") or job.get("reason"),
        )
        for job in items
    ]
    render.table(console, ("JOB", "STATE", "FOR", "PARTITION", "WHY…"), rows, indent)


def waiters(console: Console, items: Sequence[View], indent: int = 2) -> None:
    """A queue: the position of each job, the attempt of a run that waits to be started, and how many events of a large
    fire it was made for."""
    rows: Rows = [
        (str(item["position"]), item["job_id"], _number(item.get("attempt")), _several(item)) for item in items
    ]
    render.table(console, ("#", "JOB", "ATTEMPT", "EVENTS"), rows, indent)


def _with_count(state: Text, item: View) -> Text:
    """A state, with the number of the events for which it holds, if they are several."""
    count = int(item.get("count", 1))
    return Text.assemble(state, (f" x {count:,}", "dim")) if count > 1 else state


def _several(item: View) -> str | None:
    count = int(item.get("count", 1))
    return f"{count:,}" if count > 1 else None


def runs(console: Console, items: Sequence[View], now: datetime, indent: int = 0, cost: bool = False) -> None:
    """Runs, newest first. The sent events of a large fire are one row, with the id of the fire. With ``cost``, each has
    its cost in dollars, if its target has billed it."""
    rows: Rows = [
        (
            run["fire"] if run.get("sends") else run["run_id"],
            _with_count(_state_of(run), run),
            wording.ago(run.get("started_at") or run.get("start_requested_at") or run.get("claimed_at"), now),
            wording.duration(wording.waited(run)),
            wording.duration(wording.took(run, now)),
            _cost(run.get("billed")) if cost else None,
            _values(run.get("partition") or run.get("correlation")),
            _late_of(run) or run.get("reason"),
        )
        for run in items
    ]
    render.table(console, ("RUN", "STATE", "STARTED", "WAITED", "TOOK", "COST", "PARTITION", "REASON…"), rows, indent)


def _cost(billed: View | None) -> str | None:
    return f"${billed['cost_usd']:.4f}" if billed is not None and billed.get("cost_usd") is not None else None


def _late_of(run: View) -> str | None:
    """How late the events of a large fire were sent; None for any other run."""
    sends = run.get("sends")
    return f"late: p50 {_millis(sends['late_p50'])}, max {_millis(sends['late_max'])}" if sends else None


def _millis(number: float) -> str:
    return wording.duration(number / 1000)


def fire_events(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """The events of a large fire by number."""
    rows: Rows = [
        (
            str(event["index"]),
            event["id"],
            render.state(event["state"]),
            wording.ago(event.get("due_at"), now),
            event.get("reason"),
        )
        for event in items
    ]
    render.table(console, ("#", "RUN", "STATE", "DUE", "REASON…"), rows, indent)


def records(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """Work that never became a run. An id begins with the name of its schedule, so that needs no column."""
    rows: Rows = [
        (
            record["id"]
            if str(record["id"]).startswith(record["schedule"])
            else f"{record['schedule']} {record['id']}",
            render.state(record["kind"]),
            wording.both(record.get("at"), now),
            str(record["count"]) if record.get("count", 1) > 1 else None,
            record.get("reason"),
        )
        for record in items
    ]
    render.table(console, ("WORK", "ENDED AS", "AT", "COUNT", "REASON…"), rows, indent)


def last_failures(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """The last runs that failed: of a schedule by partition, of a DAG by node, with what to do next."""
    rows: Rows = [
        (
            item.get("node") or wording.pairs(item.get("partition")),
            wording.both(item.get("at"), now),
            f"{item['attempt']}/{item['attempts']}",
            item["run_id"],
            f"{item['error']} ({item['next']})",
        )
        for item in items
    ]
    render.table(console, ("OF", "FAILED", "ATTEMPT", "RUN", "ERROR…"), rows, indent)


def partitions(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """Partitions. Those of an Iceberg table are its snapshots, oldest first, because snapshot ids have no order."""
    if any(item.get("snapshot") for item in items):
        _snapshots(console, items, now, indent)
        return
    timed = any("period" in item for item in items)
    rows: Rows = [
        (
            wording.pairs(item.get("partition")),
            *((wording.period(item.get("period")),) if timed else ()),
            wording.ago(item.get("ready_at"), now),
            item.get("path"),
        )
        for item in items
    ]
    render.table(console, ("PARTITION", *(("PERIOD",) if timed else ()), "READY", "PATH…"), rows, indent)
    ignored: Rows = [
        (wording.pairs(item["partition"]), late["schedule"], wording.ago(late["at"], now), late["reason"])
        for item in items
        for late in item.get("late", ())
    ]
    if ignored:
        render.table(console, ("LATE PARTITION", "IGNORED BY", "AT", "WHY…"), ignored, indent)


def _snapshots(console: Console, items: Sequence[View], now: datetime, indent: int) -> None:
    known = [(item, item.get("snapshot") or {}) for item in items]
    rows: Rows = [
        (
            snapshot.get("id"),
            snapshot.get("operation"),
            _count(snapshot.get("added_data_files")),
            _count(snapshot.get("added_records")),
            _count(snapshot.get("deleted_data_files")),
            _count(snapshot.get("total_records")),
            wording.ago(item.get("put_at"), now),
        )
        for item, snapshot in sorted(known, key=lambda each: str(each[0].get("put_at")))
    ]
    columns = ("SNAPSHOT", "OPERATION", "FILES ADDED", "RECORDS ADDED", "FILES DELETED", "RECORDS", "COMMITTED")
    render.table(console, columns, rows, indent)


def _count(number: int | None) -> str:
    return wording.NOTHING if number is None else f"{number:,}"


def constraints(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    """Whether each constraint is met, and until when it is not."""
    rows: Rows = [
        (
            wording.words(item.get("type")),
            Text("yes", "green") if item.get("met") else Text("no", "yellow"),
            wording.ago(item.get("until"), now),
            item.get("why"),
        )
        for item in items
    ]
    render.table(console, ("CONSTRAINT", "MET", "UNTIL", "WHY…"), rows, indent)


def versions(console: Console, items: Sequence[View], now: datetime, indent: int = 0) -> None:
    rows: Rows = [
        (
            str(item["version"]),
            wording.ago(item.get("created_at"), now),
            item.get("created_by"),
            render.lines(console, item.get("changes") or ()),
        )
        for item in items
    ]
    render.table(console, ("VERSION", "CREATED", "BY", "CHANGES…"), rows, indent)


def attempt(run: View) -> str:
    return f"{run.get('attempt', 1)} of {run.get('attempts', 1)}"


def location(dataset: View) -> str:
    return f"s3://{dataset['bucket']}/{dataset.get('prefix', '')}" if dataset.get("bucket") else ""


def ready(dataset: View) -> str:
    """When a partition of a dataset counts as ready (T8)."""
    if dataset.get("format") == "iceberg":
        return "a commit"
    return str((dataset.get("ready") or {}).get("done_flag") or "first object")


def fresh(dataset: View, now: datetime) -> str:
    """Whether a dataset with ``fresh`` is late: ``late for 3 h`` or ``2 h left``."""
    found = dataset.get("freshness")
    if not found:
        return wording.NOTHING
    span = wording.ago(found["fresh_until"], now).removeprefix("in ").removesuffix(" ago")
    return f"late for {span}" if found["late"] else f"{span} left"


def rest(answer: View, shown: int, command: str) -> None:
    """Print a note when a list was cut, with the command that shows all."""
    if answer.get("next_cursor"):
        render.note(f"{shown} shown; {command} --limit 0 shows all")


def _state_of(run: View) -> Text:
    """The state, with the number of the attempt unless it is a successful first attempt."""
    state = render.state(run.get("state"))
    if run.get("attempts", 1) > 1 and (run.get("attempt", 1) > 1 or run.get("state") in ("FAILED", "RETRYING")):
        return Text.assemble(state, (f" {run.get('attempt')}/{run['attempts']}", "dim"))
    return state


def period(dataset: View) -> str | None:
    """The period that each partition of a dataset is, and how folders name it."""
    rule = dataset.get("period")
    if not rule:
        return None
    starts = f", weeks start on {rule['week_starts']}" if "week_starts" in rule else ""
    return f"{rule.get('each')}, named {rule.get('format')}, in {rule.get('zone')}{starts}"


def ignored(dataset: View) -> list[str]:
    """The last objects of a dataset that belong to no partition, and why."""
    return [f"{each['key']} at {each['at']}: {each['why']}" for each in dataset.get("ignored") or ()]


def _values(partition: View | None) -> str:
    """``2013/1/1``: the values without the keys, which are the same in all rows."""
    return "/".join(str(value) for value in partition.values()) if partition else wording.NOTHING


def _changed(view: View, now: datetime) -> str:
    return wording.ago(view.get("updated_at"), now)


def _since(text: str | None, now: datetime) -> str:
    return wording.duration(wording.between(text, now.isoformat()))


def _target_type(view: View) -> str:
    return str((view.get("target") or {}).get("type") or wording.NOTHING)


def _entry(view: View) -> str:
    target = view.get("target") or {}
    return str(target.get("entry_point") or target.get("queue_url") or wording.NOTHING)


def _attempts(view: View) -> str:
    return _number((view.get("retries") or {}).get("attempts"))


def _number(value: Any) -> str:
    return wording.NOTHING if value is None else str(value)


def searched(found: Found, maximum: int | None, as_json: bool, nothing: str) -> list[Document]:
    """The items of a search to show in a table. Prints the whole answer with ``--json``, and ``nothing`` for none."""
    if as_json:
        render.machine(found.answer)
        return []
    frame.note_left_out(found.left_out)
    items: list[Document] = found.answer["items"][:maximum]
    if not items:
        render.note(nothing)
    return items
