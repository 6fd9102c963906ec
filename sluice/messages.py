"""The document of a message from options and a file, checked as far as possible without the API."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice import documents
from sluice.client import Document
from sluice.errors import WrongUsage


def document(file: str | None, options: Mapping[str, Any], target: Document | None, data: Document) -> Document:
    """The document of a file, overridden by the options. Missing fields get the API's defaults."""
    body = documents.load_plain(file) if file is not None else {}
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("data", "data_base64", "content_type"):
        if data:
            body.pop(name, None)
    if "workflow" in given:
        body.pop("target", None)
    if target is not None:
        body.pop("workflow", None)
        given["target"] = target
    body |= given | data
    if not body.get("schedule") and not body.get("due_time"):
        hint = "such as --schedule '@every 1h', or --due 10m for a single one"
        raise WrongUsage("expected a schedule, a due time, or both, got neither", "--schedule", hint)
    return body


def target(text: str | None) -> Document | None:
    """The target in an option: a JSON object with a type."""
    if text is None:
        return None
    hint = """quote it for the shell, such as --target '{"type": "sqs", "queue_url": "https://..."}'"""
    parsed = _json(text, "--target", hint)
    if not isinstance(parsed, dict) or "type" not in parsed:
        raise WrongUsage(f"expected a JSON object with a type, got {text}", "--target", hint)
    return parsed


def carried(text: str | None, content_type: str | None) -> Document:
    """The data of a message. ``@FILE`` is the content of a file, as bytes if it is not text. A text that parses as a
    JSON object or list is sent as JSON, unless another content type is given. With a JSON content type, the text must
    be JSON."""
    if text is None:
        if content_type is not None:
            raise WrongUsage("expected --data with --content-type, got none", "--content-type")
        return {}
    typed = {"content_type": content_type} if content_type is not None else {}
    if text.startswith("@"):
        content = _content(text[1:])
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return {"data_base64": base64.b64encode(content).decode(), **typed}
    if content_type is not None and _is_json(content_type):
        return {"data": _json(text, "--data", "or another --content-type"), **typed}
    if content_type is None and text[:1] in ("{", "["):
        return {"data": _json(text, "--data", "or add --content-type text/plain")}
    return {"data": text, **typed}


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUsage(f"expected a readable file, got {path}: {error.strerror}", "--data") from None


def _json(text: str, field: str, hint: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{field}, line {error.lineno}, column {error.colno}"
        raise WrongUsage(f"expected JSON, got an error: {error.msg.lower()}", where, hint) from None
