"""Converts calls of the AWS SDK, as EventBridge Scheduler makes them, by the models of botocore."""

from __future__ import annotations

import json
import re
from typing import Any

from sluice.client import Document

# The attributes that EventBridge Scheduler replaces in an input, and the values of the run context that stand for them.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
_ATTRIBUTES = {
    "schedule-arn": "{{schedule}}",
    "scheduled-time": "{{nominal_time}}",
    "execution-id": "{{run_id}}",
    "attempt-number": "{{attempt}}",
}
_ATTRIBUTE = re.compile(rf"<aws\.scheduler\.({'|'.join(_ATTRIBUTES)})>")


def api_call(action: str, given: Any) -> Document | None:
    """The target ``aws_api`` for an action of the SDK for Java, such as ``sfn:startExecution``; None for one that
    botocore does not have, that answers with a stream, or whose input Sluice would take for a template."""
    from botocore import xform_name
    from botocore.session import Session
    from botocore.utils import EVENT_ALIASES

    if not isinstance(given, dict) or "{{" in json.dumps(given):
        return None
    session, (service, _, called) = Session(), action.lower().partition(":")
    known = session.get_available_services()
    plain = {name.replace("-", ""): name for name in known}
    aliases = {EVENT_ALIASES[name].replace("-", ""): name for name in known if name in EVENT_ALIASES}
    name = plain.get(service) or aliases.get(service)
    if name is None:
        return None
    model = session.get_service_model(name)
    operation = next((each for each in model.operation_names if each.lower() == called), None)
    if operation is None:
        return None
    known_as = model.operation_model(operation)
    if known_as.has_streaming_output or known_as.has_event_stream_output or known_as.has_event_stream_input:
        return None
    shape = known_as.input_shape
    return {
        "type": "aws_api",
        "service": name,
        "action": xform_name(operation),
        **({"input": _named(shape, given)} if given and shape is not None else {}),
    }


def _named(shape: Any, value: Any) -> Any:
    """A part of the input with the API's names of members: the SDK for Java begins all with a capital."""
    kind = shape.type_name if shape is not None else ""
    if kind == "structure" and isinstance(value, dict):
        names = {name.lower(): name for name in shape.members}
        found = ((names.get(key.lower(), key), each) for key, each in value.items())
        return {name: _named(shape.members.get(name), each) for name, each in found}
    if kind == "map" and isinstance(value, dict):
        return {key: _named(shape.value, each) for key, each in value.items()}
    if kind == "list" and isinstance(value, list):
        return [_named(shape.member, each) for each in value]
    return _ATTRIBUTE.sub(lambda found: _ATTRIBUTES[found[1]], value) if isinstance(value, str) else value
