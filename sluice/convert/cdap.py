"""Converts schedules of CDAP, in the JSON of its API, into an app document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.client import Document
from sluice.convert import cron, jsons
from sluice.convert.draft import Draft, NotCarried, name_of, span
from sluice.convert.jsons import object_at, text_at

STATUSES = {"COMPLETED": "COMPLETED", "FAILED": "FAILED", "KILLED": "KILLED", "RUNNING": "STARTED"}
ZONES = {"PST": "America/Los_Angeles", "EST": "America/New_York", "CST": "America/Chicago", "MST": "America/Denver"}


def convert(text: str, draft: Draft, zone: str | None = None) -> None:
    expected = "the JSON of a CDAP schedule, or a list of them"
    entries = jsons.objects(text, draft.source, ("schedules",), expected)
    owners = {name_of(text_at(entry, key), "") for entry in entries for key in ("namespace", "application")}
    own = Own(draft, frozenset({*owners, draft.namespace, draft.app, ""}))
    for number, entry in enumerate(entries):
        where = text_at(entry, "name") or f"entry {number + 1}"
        try:
            _schedule(own, where, entry, zone)
        except NotCarried as lost:
            draft.find(where, f"{where} was not converted: {lost.what}", lost.why, lost.todo)


@dataclass(frozen=True, slots=True)
class Own:
    """The draft, and the names of namespaces and applications that the file itself describes."""

    draft: Draft
    names: frozenset[str]


def _schedule(own: Own, where: str, entry: dict[str, Any], zone: str | None) -> None:
    draft = own.draft
    trigger = _trigger(own, where, object_at(entry, "trigger"))
    program = object_at(entry, "program")
    wanted = name_of(text_at(program, "programName"), "program")
    kind = text_at(program, "programType").lower() or "program"
    workflow = wanted
    if wanted not in draft.parts["workflows"]:
        workflow = draft.unknown(where, wanted, f"the CDAP {kind} {text_at(program, 'programName')}")
    timed = _has_time(trigger)
    if timed and zone is None:
        draft.find(
            "all times",
            "times are in UTC",
            "CDAP uses the zone of its server, which the file does not name",
            "convert again with --zone, for example --zone America/Los_Angeles",
        )
    given = entry.get("constraints")
    constraints = [_constraint(draft, where, each) for each in given if isinstance(each, dict)] if given else []
    millis = entry.get("timeoutMillis")
    properties = object_at(entry, "properties")
    body = {
        "workflow": workflow,
        "description": text_at(entry, "description")[:1000],
        "enabled": draft.mode(text_at(entry, "status") != "SUSPENDED"),
        "zone": zone if timed else None,
        "trigger": trigger,
        "constraints": [each for each in constraints if each],
        "properties": dict(properties),
        "timeout": {"after": span(millis / 1000)} if isinstance(millis, int) and millis > 0 else None,
    }
    draft.add("schedules", name_of(where), body)


def _trigger(own: Own, where: str, given: dict[str, Any]) -> Document:
    kind = text_at(given, "type").upper()
    if kind == "TIME":
        fields = text_at(given, "cronExpression").split()
        if len(fields) not in (5, 6):
            raise NotCarried(f"cronExpression {' '.join(fields)!r}", "it has neither 5 nor 6 fields", "correct it")
        expression = cron.quartz(fields, both_days=len(fields) == 5)
        week = expression.split()[-1]
        if any(sign.isdigit() for sign in fields[-1].partition("#")[0]):
            own.draft.find(
                where,
                f"the days {fields[-1]} became {week}",
                "CDAP hands them to Quartz, where 1 is Sunday and 7 is Saturday",
                "check that these are the days on which it runs",
            )
        return {"type": "time", "expression": expression}
    if kind == "PARTITION":
        dataset = _dataset(own, where, given.get("dataset"))
        count = given.get("numPartitions", 1)
        return {"type": "partition", "dataset": dataset, **({"count": count} if count != 1 else {})}
    if kind == "PROGRAM_STATUS":
        return _status(own, where, given)
    if kind in ("AND", "OR"):
        listed = given.get("triggers")
        leaves = [_trigger(own, where, each) for each in listed or () if isinstance(each, dict)]
        if not leaves:
            raise NotCarried(f"the trigger {kind}", "it contains no triggers", "correct it")
        return leaves[0] if len(leaves) == 1 else {"type": "all" if kind == "AND" else "any", "triggers": leaves}
    if kind == "STREAM_SIZE":
        raise NotCarried("the trigger STREAM_SIZE", "Sluice has no streams", "use the trigger size on a dataset")
    raise NotCarried(f"the trigger {kind or 'without a type'}", "no such kind is known", "write a trigger by hand")


def _status(own: Own, where: str, given: dict[str, Any]) -> Document:
    draft = own.draft
    program = object_at(given, "programId")
    name = name_of(text_at(program, "program") or text_at(program, "programName"), "program")
    namespace, app = (name_of(text_at(program, key), "") for key in ("namespace", "application"))
    if namespace in own.names and app in own.names:
        if name not in draft.parts["workflows"]:
            draft.unknown(where, name, f"the CDAP program {name}")
    else:
        name = f"{namespace or draft.namespace}.{app or draft.app}.{name}"
        draft.find(
            where,
            f"it waits for the workflow {name}",
            "the file does not contain that workflow",
            f"create {name} first, or change the name",
        )
    listed = given.get("programStatuses")
    statuses = [STATUSES.get(str(status).upper()) for status in listed] if isinstance(listed, list) else []
    if None in statuses or not statuses:
        known = ", ".join(STATUSES)
        raise NotCarried(f"the statuses {listed}", f"Sluice announces {known}", "correct programStatuses")
    return {"type": "program_status", "workflow": name, "statuses": statuses}


def _dataset(own: Own, where: str, given: Any) -> str:
    draft = own.draft
    full = given if isinstance(given, dict) else {"dataset": given}
    name = name_of(text_at(full, "dataset"), "dataset")
    namespace = name_of(text_at(full, "namespace"), "")
    if namespace not in own.names:
        draft.find(
            where,
            f"it waits for the dataset {namespace}.{name}",
            "the file does not contain that dataset",
            f"create {namespace}.{name} first, or change the name",
        )
        return f"{namespace}.{name}"
    if name not in draft.parts["datasets"]:
        draft.parts["datasets"][name] = {"bucket": "lake", "prefix": f"{name}/", "keys": ["partition"]}
        draft.find(
            where,
            f"the dataset {name} has a bucket, a prefix and a key that are guesses",
            "CDAP registers partitions itself; Sluice sees them in S3, or gets them by its API",
            f"correct datasets.{name}, and add ready if a done-flag completes a partition",
        )
    return name


def _constraint(draft: Draft, where: str, given: dict[str, Any]) -> Document | None:
    kind = text_at(given, "type").upper()
    otherwise = {"on_unmet": "wait" if given.get("waitUntilMet") else "abort"}
    if kind == "CONCURRENCY" and isinstance(given.get("maxConcurrency"), int):
        return {"type": "concurrency", "max": given["maxConcurrency"], **otherwise}
    if kind == "DELAY" and isinstance(given.get("millisAfterTrigger"), int):
        return {"type": "delay", "after": span(given["millisAfterTrigger"] / 1000)}
    if kind == "LAST_RUN" and isinstance(given.get("millisSinceLastRun"), int):
        return {"type": "since_last_run", "at_least": span(given["millisSinceLastRun"] / 1000), **otherwise}
    if kind == "TIME_RANGE" and text_at(given, "startTime") and text_at(given, "endTime"):
        zone = text_at(given, "timeZone")
        if zone in ZONES:
            draft.find(where, f"the zone {zone} became {ZONES[zone]}", "Sluice takes IANA names", "check it")
        bounds = {"start": text_at(given, "startTime"), "end": text_at(given, "endTime")}
        named = {"zone": ZONES.get(zone, zone)} if zone else {}
        return {"type": "time_window", **bounds, **named, **otherwise}
    draft.find(
        where,
        f"the constraint {kind or 'without a type'} is not carried over",
        "it is unknown, or a value is missing",
        "write a constraint by hand (docs/constraints.md)",
    )
    return None


def _has_time(trigger: Document) -> bool:
    return trigger["type"] == "time" or any(_has_time(each) for each in trigger.get("triggers", ()))
