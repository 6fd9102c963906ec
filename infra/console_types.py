"""Write `console/src/api/types.ts`: the documents and answers of the API as TypeScript, from its OpenAPI document.

    python -m infra.console_types

`Answers` maps each operation to its answer, so that the console's client types a request by its path. A test compares
the page with the API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PAGE = Path(__file__).resolve().parent.parent / "console" / "src" / "api" / "types.ts"
SCHEMAS = "#/components/schemas/"
HEAD = """// Generated from the OpenAPI document of the API by `python -m infra.console_types`. Do not edit.

"""
WORDS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
PLAIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
OTHER_NAMES = {"Record": "RecordOfWork", "Error": "Refusal"}  # TypeScript has types of these names


def page() -> str:
    """The whole file."""
    from chalicelib.web.routes import openapi

    return write(openapi.describe())


def write(document: Json) -> str:
    """The TypeScript of an OpenAPI document."""
    parts = [declare(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return HEAD + "\n".join([*parts, _answers(document)])


def declare(name: str, schema: Json) -> str:
    """The declaration of one named schema."""
    name = OTHER_NAMES.get(name, name)
    if schema.get("properties"):
        return f"export interface {name} {_object(schema, 0)}\n"
    return f"export type {name} = {type_of(schema)};\n"


def type_of(schema: Json, depth: int = 0) -> str:
    """The type of a schema. What TypeScript cannot say, such as a pattern, is left out."""
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(SCHEMAS)
        return OTHER_NAMES.get(name, name)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(type_of(variant, depth) for variant in schema[key]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": word}, depth) for word in kind)
    if kind == "array":
        return _array(schema, depth)
    if kind == "object":
        return _object(schema, depth)
    return WORDS.get(str(kind), "unknown")


def _array(schema: Json, depth: int) -> str:
    if "prefixItems" in schema:
        return "[" + ", ".join(type_of(item, depth) for item in schema["prefixItems"]) + "]"
    item = type_of(schema.get("items", {}), depth)
    return f"({item})[]" if " | " in item else f"{item}[]"


def _object(schema: Json, depth: int) -> str:
    properties: Json = schema.get("properties") or {}
    if not properties:
        extra = schema.get("additionalProperties")
        return f"Record<string, {type_of(extra, depth) if isinstance(extra, dict) else 'unknown'}>"
    return "{\n" + "".join(_members(properties, schema.get("required", ()), depth + 1)) + "  " * depth + "}"


def _members(properties: Json, required: Any, depth: int) -> Iterator[str]:
    for name, schema in properties.items():
        key = name if PLAIN.match(name) else json.dumps(name)
        yield f"{'  ' * depth}{key}{'' if name in required else '?'}: {type_of(schema, depth)};\n"


def _answers(document: Json) -> str:
    lines = [
        f"  {json.dumps(f'{method.upper()} {path}')}: {_answer(operation, 1)};\n"
        for path, methods in sorted(document["paths"].items())
        for method, operation in sorted(methods.items())
    ]
    return "/** Operation -> its answer. */\nexport interface Answers {\n" + "".join(lines) + "}\n"


def _answer(operation: Json, depth: int) -> str:
    good = [answer for status, answer in sorted(operation["responses"].items()) if status != "default"]
    contents = [answer["content"]["application/json"]["schema"] for answer in good if "content" in answer]
    return " | ".join(dict.fromkeys(type_of(schema, depth) for schema in contents)) or "null"


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
