"""The content of a delivery in the format of its target: that of Sluice (`envelope`), or a CloudEvent (E11).

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
https://github.com/cloudevents/spec/blob/main/cloudevents/extensions/dataref.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chalicelib.aws.targets import envelope
from chalicelib.core import ids
from chalicelib.core.definitions.data import is_json
from chalicelib.core.rows.run import Run

STRUCTURED = "application/cloudevents+json"
BINARY = "cloudevents-binary"  # the format of an HTTP call whose headers are the attributes
DELIVERY, NOTICE = "sluice.delivery", "sluice.notice"  # the types of events, unless the target sets one
# What a header may hold as it is; all else is percent-encoded, also `%`.
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_IN_URI = ":/?#[]@!$&'()*+,;=%~"

Typed = dict[str, dict[str, str]]


def document(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The delivery as one JSON object, for targets without attributes or headers."""
    return _structured(run, context) if _is_cloudevent(run) else envelope.envelope(run, context)


def message(run: Run, context: Mapping[str, Any]) -> tuple[str, Typed]:
    """The text of a message of SQS or SNS, and its attributes, of which SQS takes ten."""
    if not _is_cloudevent(run):
        content = envelope.content_of(run, context)
        return content.as_text, envelope.typed_attributes(run, content)
    event = _structured(run, context)
    text = json.dumps(event)
    typed = envelope.typed_attributes(run, envelope.Content(text.encode(), STRUCTURED, text))
    for name in ("type", "source", "subject"):
        typed[f"ce-{name}"] = {"DataType": "String", "StringValue": event[name]}
    return text, typed


def call(run: Run, context: Mapping[str, Any]) -> tuple[dict[str, str], bytes, str]:
    """The headers of an HTTP call, its body, and the type of the body."""
    headers = {f"Sluice-{name.title()}": value for name, value in envelope.attributes(run).items()}
    if not _is_cloudevent(run):
        content = envelope.content_of(run, context)
        return headers, content.data, content.content_type
    if run.request.target["format"] != BINARY:
        return headers, json.dumps(_structured(run, context)).encode(), STRUCTURED
    attributes = _attributes(run)
    content_type = attributes.pop("datacontenttype")
    headers |= {f"ce-{name}": quote(str(value), safe=_PLAIN) for name, value in attributes.items()}
    data = b"" if "dataref" in attributes else envelope.content_of(run, context).data
    return headers, data, content_type


def _is_cloudevent(run: Run) -> bool:
    return run.request.target.get("format") is not None


def _attributes(run: Run) -> dict[str, Any]:
    """The attributes of the CloudEvent of a run. Each try and redrive has the same ``id`` and ``source``; the times are
    those of the run, not of the call."""
    own, target, data = envelope.attributes(run), run.request.target, run.request.data or {}
    namespace, app, _ = run.schedule.split(".", 2)
    attributes = {
        "specversion": "1.0",
        "id": run.run_id,
        "source": f"/v1/namespaces/{namespace}/apps/{app}",
        "type": target.get("event_type") or (NOTICE if ids.is_of_notice(run.schedule) else DELIVERY),
        "subject": ids.plain(run.schedule),
        "time": own["nominal-time"],
        "datacontenttype": str(data.get("content_type") or envelope.JSON),
        "sluicedue": own["due-time"],
        "sluiceattempt": run.attempt,
    }
    return attributes | ({"dataref": quote(str(data["uri"]), safe=_IN_URI)} if "uri" in data else {})


def _structured(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The CloudEvent of a run in the JSON format. Large data is passed by reference."""
    attributes = _attributes(run)
    if "dataref" in attributes:
        return attributes
    content = envelope.content_of(run, context)
    if run.request.data is None:
        return attributes | {"data": dict(context)}
    if content.text is not None and not is_json(content.content_type):
        return attributes | {"data": content.text}
    try:
        return attributes | {"data": json.loads(content.data)}
    except ValueError:  # bytes, or a text that is not the JSON that its type says
        return attributes | {"data_base64": envelope.as_base64(content.data)}
