"""The trigger of a DAG of Airflow: its schedule, timetable or assets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sluice import zones
from sluice.client import Document
from sluice.convert import cron
from sluice.convert.airflow_values import Asset, Assets, Dag, Span, Task, Timetable, When, ZoneName
from sluice.convert.draft import Draft, NotCarried, name_of, span

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * sun",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@midnight": "0 0 * * *",
    "@once": "R1/PT1S",
}
SCHEDULES = ("schedule", "schedule_interval", "timetable")
UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
EVERY = "all DAGs with an interval"


class Times:
    """``producers``: the tasks that update an asset, each with its DAG and its workflow."""

    def __init__(
        self, draft: Draft, default_zone: str, producers: Callable[[Asset], Iterable[tuple[Dag, Task, str]]]
    ) -> None:
        self.draft, self.default_zone, self.producers = draft, default_zone, producers

    def zone(self, dag: Dag) -> str:
        value = next((dag.named[key] for key in SCHEDULES if key in dag.named), None)
        named = value.named.get("timezone") if isinstance(value, Timetable) else None
        if isinstance(named, ZoneName | str):
            return named.name if isinstance(named, ZoneName) else named
        start = dag.named.get("start_date", dag.defaults.get("start_date"))
        return start.zone if isinstance(start, When) and start.zone else self.default_zone

    def trigger(self, dag: Dag) -> Document:
        """The trigger of a DAG, with findings. Where its schedule cannot be converted, it waits for an event."""
        try:
            return self._schedule(dag, self.zone(dag))
        except NotCarried as lost:
            self.draft.find(_where(dag), f"its schedule was not converted: {lost.what}", lost.why, lost.todo)
            return self.by_hand(dag)

    def by_hand(self, dag: Dag) -> Document:
        """The trigger of a DAG without a schedule: an event of its own name."""
        event = f"{name_of(dag.id, 'dag')}.requested"
        self.draft.find(
            _where(dag),
            f"it waits for the event {event}",
            "every DAG of Sluice has a trigger",
            f"start it by hand: sluice dags run {self.draft.namespace}.{self.draft.app}.{name_of(dag.id, 'dag')}; "
            f"or post the event where TriggerDagRunOperator was used: sluice event",
        )
        return {"type": "event", "event": event}

    def _schedule(self, dag: Dag, zone: str) -> Document:
        given = [dag.named[key] for key in SCHEDULES if key in dag.named]
        if not given:
            self.draft.find(
                _where(dag),
                "it has no schedule, so it runs by hand",
                "Airflow 3 does so too; Airflow 2 runs such a DAG once a day",
                "write a time trigger if it ran daily",
            )
        value = given[0] if given else None
        if value is None or value == "None":
            return self.by_hand(dag)
        return self._times(value, dag, zone, self._bounds(dag, zone))

    def _bounds(self, dag: Dag, zone: str) -> dict[str, datetime]:
        found = {}
        for key, field in (("start_date", "start"), ("end_date", "end")):
            value = dag.named.get(key, dag.defaults.get(key))
            if isinstance(value, When):
                found[field] = _in_zone(value.wall, value.zone or zone)
            elif value is not None:
                todo = f"add `{field}:` to the trigger if it matters"
                self.draft.find(_where(dag), f"{key} is not carried over", "its value is computed at run time", todo)
        return found

    def _times(self, value: Any, dag: Dag, zone: str, bounds: dict[str, datetime]) -> Document:
        if isinstance(value, str):
            return self._expression(value, dag, bounds)
        if isinstance(value, Span) and value.seconds >= 1:
            if dag.intervals:
                self._intervals(dag, {})
                step = timedelta(seconds=value.seconds)
                bounds = {field: at + step for field, at in bounds.items()}
            return {"type": "time", "expression": f"@every {span(value.seconds)}", **_limits(bounds)}
        if isinstance(value, Asset | Assets | list | tuple):
            return self._assets(value, dag)
        if isinstance(value, Timetable):
            return self._timetable(value, dag, zone, bounds)
        text = getattr(value, "text", repr(value))
        raise NotCarried(f"the schedule {text[:100]}", "its value is computed at run time", "write a time trigger")

    def _expression(self, text: str, dag: Dag, bounds: dict[str, datetime]) -> Document:
        if text == "@continuous":
            raise NotCarried("@continuous", "a DAG cannot wait for its own end", "use elapsed, or a time trigger")
        if text == "@once":
            return {"type": "time", "expression": PRESETS[text]}
        if text.startswith("@") and text not in PRESETS:
            raise NotCarried(f"the preset {text}", "Airflow has no such preset", "write a time trigger")
        expression = PRESETS.get(text) or cron.croniter(text)
        if dag.intervals:
            self._intervals(dag, _limits(bounds))
        return {"type": "time", "expression": expression, **_limits(bounds)}

    def _timetable(self, table: Timetable, dag: Dag, zone: str, bounds: dict[str, datetime]) -> Document:
        keys = ("cron", "crons", "delta", "event_dates", "timetable")
        first = table.given[0] if table.given else next((table.named[key] for key in keys if key in table.named), None)
        limits = _limits(bounds)
        if table.kind in ("CronTriggerTimetable", "MultipleCronTriggerTimetable"):
            texts = [each for each in (*table.given, first) if isinstance(each, str)]
            leaves = [
                {"type": "time", "expression": PRESETS.get(text) or cron.croniter(text), **limits}
                for text in dict.fromkeys(texts)
            ]
            if leaves:
                return leaves[0] if len(leaves) == 1 else {"type": "any", "triggers": leaves}
        if table.kind in ("CronDataIntervalTimetable", "DeltaDataIntervalTimetable") and first is not None:
            dag.intervals = True
            return self._times(first, dag, zone, bounds)
        if table.kind == "DeltaTriggerTimetable" and isinstance(first, Span):
            return {"type": "time", "expression": f"@every {span(first.seconds)}", **limits}
        if table.kind == "EventsTimetable" and isinstance(first, list) and all(isinstance(at, When) for at in first):
            due = [_iso(_in_zone(at.wall, at.zone or zone)) for at in first]
            return {"type": "any", "triggers": [{"type": "time", "due_time": at} for at in due]}
        if table.kind in ("AssetOrTimeSchedule", "DatasetOrTimeSchedule"):
            assets = table.named.get("assets", table.named.get("datasets"))
            time = self._times(table.named.get("timetable"), dag, zone, bounds)
            return {"type": "any", "triggers": [time, self._assets(assets, dag)]}
        raise NotCarried(f"the timetable {table.kind}", "its code says when it fires", "write a trigger by hand")

    def _intervals(self, dag: Dag, limits: dict[str, str]) -> None:
        self.draft.find(
            EVERY,
            "logical_start_time is the instant of the fire",
            "Airflow's logical date is the beginning of the interval that ends there",
            "subtract the interval where a job reads the logical date",
        )
        if limits:
            self.draft.find(
                _where(dag),
                f"the bounds of the trigger ({', '.join(limits)}) are instants of fires",
                "in Airflow they are beginnings of intervals, whose runs start one interval later",
                "move a bound that is still to come on by one interval",
            )

    def _assets(self, value: Any, dag: Dag) -> Document:
        if isinstance(value, Asset):
            return self._asset(value, dag)
        kind, items = (value.kind, value.items) if isinstance(value, Assets) else ("all", value)
        if not isinstance(items, list | tuple) or not items:
            raise NotCarried("its assets", "their names are computed at run time", "write a trigger by hand")
        if not all(isinstance(each, Asset | Assets | list | tuple) for each in items):
            raise NotCarried("its assets", "the name of one is computed at run time", "write a trigger by hand")
        leaves = [self._assets(each, dag) for each in items]
        return leaves[0] if len(leaves) == 1 else {"type": kind, "triggers": leaves}

    def _asset(self, asset: Asset, dag: Dag) -> Document:
        """The trigger that waits for an asset: for the success of any task of the file that has the asset as an outlet,
        or else for an event."""
        found = list(self.producers(asset))
        if own := [task for other, task, _ in found if other is dag]:
            raise NotCarried(
                f"the asset {asset.name}, which its own task {own[0].id} updates, line {own[0].line}",
                "a DAG cannot wait for what it starts itself",
                "use elapsed, or a time trigger",
            )
        if found:
            leaves = [{"type": "program_status", "workflow": workflow} for _, _, workflow in found]
            return leaves[0] if len(leaves) == 1 else {"type": "any", "triggers": leaves}
        event = "asset." + (re.sub(r"[^A-Za-z0-9._/-]+", "-", asset.name).strip("-/")[:100] or "unnamed")
        self.draft.find(
            _where(dag),
            f"the asset {asset.name} became the event {event}",
            "no task of the file updates it",
            "name the workflow that does in a program_status trigger, declare a dataset, or post the event",
        )
        return {"type": "event", "event": event}


def is_timed(trigger: Document) -> bool:
    return trigger["type"] == "time" or any(is_timed(each) for each in trigger.get("triggers", ()))


def waits_for_all(trigger: Document) -> bool:
    """Whether a trigger waits for several events."""
    return trigger["type"] == "all" or any(waits_for_all(each) for each in trigger.get("triggers", ()))


def longest_gap(trigger: Document) -> float:
    """The seconds between two fires of the times in a trigger, or a little more; 0 without a time."""
    if "triggers" in trigger:
        return max(longest_gap(each) for each in trigger["triggers"])
    if trigger["type"] != "time" or "expression" not in trigger:
        return 0
    text = trigger["expression"]
    if text.startswith("@every "):
        return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|[dhms])", text[7:]))
    if len(fields := text.split()[-5:]) < 5:
        return 0
    _, hour, day, month, week = fields
    gaps = ((month, 366), (day, 31), (week, 7), (hour, 1))
    return next((days * 86_400.0 for field, days in gaps if field not in ("*", "?")), 3_600.0)


def _where(dag: Dag) -> str:
    return f"DAG {dag.id}"


def _in_zone(wall: datetime, name: str) -> datetime:
    zone = zones.zone(name)
    if zone is None:
        raise NotCarried(f"the time zone {name}", "no such zone is known", "name an IANA time zone")
    return wall.replace(tzinfo=zone)


def _limits(bounds: dict[str, datetime]) -> dict[str, str]:
    return {field: _iso(at) for field, at in bounds.items()}


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
