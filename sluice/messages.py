"""The document of a message, out of options and a file. Checked as far as that goes without the API."""

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
    """A file's document with the options put over it. What is not said is left to the API."""
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
    """A target, which is a JSON object with a type."""
    if text is None:
        return None
    hint = """quote it for the shell, such as --target '{"type": "sqs", "queue_url": "https://..."}'"""
    parsed = _json(text, "--target", hint)
    if not isinstance(parsed, dict) or "type" not in parsed:
        raise WrongUsage(f"expected a JSON object with a type, got {text}", "--target", hint)
    return parsed


def carried(text: str | None, content_type: str | None) -> Document:
    """What a message carries: ``@FILE`` is that file's content, bytes if it is no text. Text that reads as a JSON
    object or list is one, unless a content type says otherwise; of a JSON type any text has to be JSON."""
    if text is None:
        if content_type is not None:
            raise WrongUsage("expected --data beside --content-type, got none", "--content-type")
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
        raise WrongUsage(f"expected a file that can be read, got {path}: {error.strerror}", "--data") from None


def _json(text: str, field: str, hint: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{field}, line {error.lineno}, column {error.colno}"
        raise WrongUsage(f"expected JSON, got {error.msg.lower()}", where, hint) from None
