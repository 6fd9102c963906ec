"""Converts schedules of EventBridge Scheduler and rules of EventBridge, from the output of the AWS command line.

The input is one of these outputs:

- of one or more calls of ``aws scheduler get-schedule``;
- of ``aws scheduler list-schedules``, which has no times;
- of ``aws events list-rules`` or ``describe-rule``, which has no targets. A rule may have the targets of
  ``list-targets-by-rule`` under the key ``Targets``.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sluice import zones
from sluice.client import Document
from sluice.convert import aws_targets, cron, jsons
from sluice.convert.draft import Draft, NotCarried, name_of, without_empty
from sluice.convert.jsons import object_at, text_at

RATE = re.compile(r"rate\(\s*(\d+)\s+(minute|hour|day)s?\s*\)")
CRON = re.compile(r"cron\((.*)\)")
AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
QUICK_TRIES = 3  # of a delivery; all further tries belong to its backoff
MAX_TRIES = 30  # of a backoff


def convert(text: str, draft: Draft) -> None:
    expected = "the JSON of `aws scheduler get-schedule`, `list-schedules` or `aws events list-rules`"
    entries = jsons.objects(text, draft.source, ("Schedules", "Rules"), expected)
    complete = {text_at(entry, "Arn") for entry in entries if text_at(entry, "ScheduleExpression")}
    for number, entry in enumerate(entries):
        where = text_at(entry, "Name") or f"entry {number + 1}"
        try:
            if "Target" not in entry and ("EventPattern" in entry or "EventBusName" in entry or _is_rule(entry)):
                _rule(draft, where, entry)
            elif "Target" in entry and text_at(entry, "ScheduleExpression"):
                _schedule(draft, where, entry)
            elif "Target" not in entry or text_at(entry, "Arn") not in complete:
                _summary(draft, where, entry)
        except NotCarried as lost:
            draft.find(where, f"{where} was not converted: {lost.what}", lost.why, lost.todo)
    if any(workflow["target"]["type"] != "worker" for workflow in draft.parts["workflows"].values()):
        draft.find(
            "all targets",
            "the roles (RoleArn) are not carried over",
            "Sluice calls targets by the roles of its own stack",
            "name the targets in the parameters of the stack (docs/targets.md)",
        )


def _is_rule(entry: dict[str, Any]) -> bool:
    return ":rule/" in text_at(entry, "Arn") or bool(text_at(entry, "ScheduleExpression"))


def _summary(draft: Draft, where: str, entry: dict[str, Any]) -> None:
    if "Target" not in entry:
        raise NotCarried(
            "it is neither a schedule nor a rule", "it has no Target and no EventPattern", "check the file"
        )
    group = text_at(entry, "GroupName") or "default"
    _workflow(draft, where, name_of(where), object_at(entry, "Target"), "")
    raise NotCarried(
        "only its workflow is there",
        "list-schedules tells neither times nor input",
        f"convert the output of: aws scheduler get-schedule --group-name {group} --name {where}",
    )


def _schedule(draft: Draft, where: str, entry: dict[str, Any]) -> None:
    zone = text_at(entry, "ScheduleExpressionTimezone") or "UTC"
    trigger = _trigger(draft, where, text_at(entry, "ScheduleExpression"), zone, "StartDate" in entry)
    start, end = _instant(entry.get("StartDate")), _instant(entry.get("EndDate"))
    if "due_time" not in trigger:
        trigger |= without_empty(
            {"start": _later(trigger.get("start"), start), "end": _sooner(trigger.get("end"), end)}
        )
    window = object_at(entry, "FlexibleTimeWindow")
    if window.get("Mode") == "FLEXIBLE":
        trigger["jitter"] = f"{window.get('MaximumWindowInMinutes', 1)}m"
    if text_at(entry, "KmsKeyArn"):
        draft.find(where, "KmsKeyArn is not carried over", "Sluice encrypts its tables by one key", "nothing")
    target = object_at(entry, "Target")
    workflow, data = _workflow(draft, where, name_of(where), target, text_at(entry, "Description"))
    group = text_at(entry, "GroupName")
    body = {
        "workflow": workflow,
        "description": text_at(entry, "Description")[:1000],
        "tags": {"group": group} if group not in ("", "default") else {},
        "enabled": draft.mode(entry.get("State") != "DISABLED"),
        "zone": None if zone == "UTC" else zone,
        "trigger": trigger,
        "data": data,
        "when_done": "delete" if entry.get("ActionAfterCompletion") == "DELETE" else None,
    }
    draft.add("schedules", name_of(where), body)


def _rule(draft: Draft, where: str, entry: dict[str, Any]) -> None:
    if text_at(entry, "ManagedBy"):
        raise NotCarried("an AWS service owns it", f"it is managed by {entry['ManagedBy']}", "leave it to that service")
    pattern = text_at(entry, "EventPattern")
    expression = text_at(entry, "ScheduleExpression")
    if expression:
        triggers = [_trigger(draft, where, expression, "UTC", False)]
        if pattern:
            draft.find(where, "its EventPattern is not carried over", "a trigger with any needs both", "add a schedule")
    else:
        triggers = [_pattern(draft, where, pattern)]
    listed = entry.get("Targets")
    targets = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    unknown: list[dict[str, Any] | None] = [None]
    for target in targets or unknown:
        name = name_of(where if len(targets) < 2 else f"{where}-{text_at(target or {}, 'Id')}")
        data = None
        if target is None:
            workflow = draft.unknown(where, name, f"the targets of rule {where}")
        else:
            workflow, data = _workflow(draft, where, name, target, text_at(entry, "Description"))
        body = {
            "workflow": workflow,
            "description": text_at(entry, "Description")[:1000],
            "enabled": draft.mode(entry.get("State", "ENABLED") != "DISABLED"),
            "trigger": triggers[0],
            "data": data,
        }
        draft.add("schedules", name, body)


def _trigger(draft: Draft, where: str, expression: str, zone: str, starts: bool) -> Document:
    """The time trigger for ``cron(...)``, ``rate(...)`` or ``at(...)``."""
    if found := RATE.fullmatch(expression):
        if not starts:
            draft.find(
                where,
                f"{expression} counts from the instant at which you enable the schedule",
                "EventBridge counts from the creation of its schedule or rule",
                "add `start:` to the trigger if the instants matter; it is the first fire",
            )
        return {"type": "time", "expression": f"@every {int(found[1])}{found[2][0]}"}
    info = _zone(zone)
    if found := AT.fullmatch(expression):
        at = datetime.fromisoformat(found[1]).replace(tzinfo=info)
        if at.astimezone(UTC).astimezone(info).replace(tzinfo=None) != at.replace(tzinfo=None):
            raise NotCarried(expression, f"the clocks of {zone} skip this time", "name another time")
        return {"type": "time", "due_time": at.isoformat().replace("+00:00", "Z")}
    found = CRON.fullmatch(expression)
    fields = found[1].split() if found else []
    if len(fields) != 6:
        raise NotCarried(expression or "no expression", "it is none of cron(), rate() and at()", "correct it")
    trigger: Document = {"type": "time", "expression": cron.quartz(fields[:5])}
    if (span := cron.years(fields[5])) is not None:
        first, last = (datetime(year, 1, 1, tzinfo=info) for year in (span[0], span[1] + 1))
        ends = datetime.fromtimestamp(last.timestamp() - 1, info)
        trigger |= {"start": _iso(first), "end": _iso(ends)}
    if zone != "UTC":
        trigger["gap"] = "skip"  # EventBridge skips a missing wall time, and fires once at one that occurs twice
    return trigger


def _pattern(draft: Draft, where: str, text: str) -> Document:
    """The trigger for a rule that waits for events: alarms, or events of an application."""
    try:
        pattern = json.loads(text) if text else None
    except ValueError:
        pattern = None
    if not isinstance(pattern, dict):
        raise NotCarried("it has no expression and no pattern", "nothing says what it waits for", "check the file")
    sources, kinds, detail = pattern.get("source"), pattern.get("detail-type"), pattern.get("detail")
    detail = detail if isinstance(detail, dict) else {}
    if sources == ["aws.cloudwatch"] and kinds == ["CloudWatch Alarm State Change"]:
        return _alarms(detail)
    if isinstance(kinds, list) and len(kinds) == 1 and isinstance(kinds[0], str) and not _of_aws(sources):
        event = re.sub(r"[^A-Za-z0-9._:/-]+", "-", kinds[0]).strip("-")[:128] or "event"
        draft.find(
            where,
            f"it waits for the event {event}",
            "Sluice takes custom events by its API, or from the default bus with the source sluice/NAMESPACE",
            f"send the events with the source sluice/{draft.namespace} and the detail-type {event}",
        )
        return without_empty({"type": "event", "event": event, "pattern": detail})
    todo = "declare a dataset for objects of S3, or let a small function post the event (docs/triggers.md)"
    raise NotCarried(f"the event pattern {text[:200]}", "Sluice takes no such events from AWS services", todo)


def _alarms(detail: dict[str, Any]) -> Document:
    names, state = detail.get("alarmName"), detail.get("state")
    states = state.get("value") if isinstance(state, dict) else ["ALARM", "OK", "INSUFFICIENT_DATA"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not isinstance(states, list):
        raise NotCarried("the alarms by a pattern", "a trigger names each alarm", "write a leaf for each alarm")
    leaves = [{"type": "cloudwatch_alarm", "alarm": name, "state": states} for name in names]
    return leaves[0] if len(leaves) == 1 else {"type": "any", "triggers": leaves}


def _of_aws(sources: Any) -> bool:
    return isinstance(sources, list) and any(str(source).startswith("aws.") for source in sources)


def _workflow(draft: Draft, where: str, name: str, target: dict[str, Any], about: str) -> tuple[str, Any]:
    """Add the workflow for a target. Returns its name, and the data of the schedule."""
    found = aws_targets.carried(target)
    if target.get("InputPath") or target.get("InputTransformer"):
        draft.find(
            where,
            "InputPath and InputTransformer are not carried over",
            "Sluice sends the run context, or the data of the schedule",
            "read what you need from the context (docs/run-context.md)",
        )
    if found.data is not None and "<aws.scheduler." in json.dumps(found.data):
        draft.find(
            where,
            "the attributes <aws.scheduler...> in its input stay as they are",
            "Sluice replaces nothing in data",
            "leave data out, and read logical_start_time and event_id from the run context",
        )
    if found.target is None:
        return draft.unknown(where, name, f"the {found.kind} of {where}", properties=_given(found.data)), None
    if found.is_call:
        call = f"{found.target['service']}:{found.target['action']}"
        draft.find(
            where,
            f"its call of {call} needs the target role of the namespace",
            "Sluice makes calls of AWS's API with no other role",
            f"python -m infra.target_role {draft.namespace} --stage STAGE --action ACTION=ARN (docs/aws-api.md)",
        )
    elif found.data is None and found.delivered:
        draft.find(
            where,
            f"the {found.kind} gets the run context",
            "EventBridge sends an event of its own where no input is set",
            "read the context (docs/run-context.md), or add data to the schedule",
        )
    elif found.data is not None and found.wraps:
        draft.find(
            where,
            f"the {found.kind} gets its input under the key data",
            'Sluice sends {"sluice": {...}, "data": ...}, so that a repeat is recognised by its id',
            'read event["data"] there',
        )
    if found.lost:
        draft.find(
            where,
            f"{found.lost} of the {found.kind} is not carried over",
            "Sluice retries and ends runs itself, so that limits and history see each attempt",
            "set retries and timeout on the workflow",
        )
    body = {
        "description": about[:1000],
        "target": found.target,
        "delivery": _delivery(draft, where, target) if found.delivered else None,
    }
    if object_at(target, "DeadLetterConfig"):
        draft.find(
            where,
            "the dead letter queue is not carried over",
            "Sluice keeps what it could not deliver itself",
            "watch sluice dead-letters, or add notify with on: [failed] to the workflow",
        )
    return draft.workflow(name, body), found.data


def _delivery(draft: Draft, where: str, target: dict[str, Any]) -> Document | None:
    policy = object_at(target, "RetryPolicy")
    retries = policy.get("MaximumRetryAttempts")
    age = policy.get("MaximumEventAgeInSeconds")
    if isinstance(age, int) and age < 86_400:
        draft.find(
            where,
            f"MaximumEventAgeInSeconds {age} is not carried over",
            "Sluice bounds the number of tries, not the age of an event",
            "choose delivery so that its tries span that time",
        )
    if not isinstance(retries, int):
        return None
    if retries + 1 <= QUICK_TRIES:
        return {"tries": retries + 1}
    return {"tries": QUICK_TRIES, "backoff": {"tries": min(retries + 1 - QUICK_TRIES, MAX_TRIES)}}


def _given(data: Any) -> Document:
    return {} if data is None else {"input": data}


def _zone(name: str) -> ZoneInfo:
    found = zones.zone(name)
    if found is None:
        raise NotCarried(f"the time zone {name}", "no such zone is known", "name an IANA time zone")
    return found


def _instant(value: Any) -> str | None:
    """The instant of StartDate or EndDate: text in version 2 of the AWS command line, seconds in version 1."""
    if value is None:
        return None
    try:
        if isinstance(value, int | float):
            return _iso(datetime.fromtimestamp(value, UTC))
        moment = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        raise NotCarried(f"the instant {value}", "it is no ISO 8601 instant", "correct it") from None
    return _iso(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _later(one: str | None, other: str | None) -> str | None:
    return max(filter(None, (one, other)), default=None, key=datetime.fromisoformat)


def _sooner(one: str | None, other: str | None) -> str | None:
    return min(filter(None, (one, other)), default=None, key=datetime.fromisoformat)
