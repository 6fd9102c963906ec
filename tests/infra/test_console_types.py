"""`infra.console_types`: the types of the console, from the OpenAPI document."""

from __future__ import annotations

from infra import console_types


def test_the_types_of_the_console_are_those_of_the_api() -> None:
    assert console_types.PAGE.read_text(encoding="utf-8") == console_types.page(), (
        "run python -m infra.console_types, and then make console-check"
    )


def test_a_schema_becomes_an_interface_with_optional_fields() -> None:
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "if-match": {"type": ["integer", "null"]},
            "parts": {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Run"}, {"type": "null"}]}},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            "kind": {"enum": ["a", "b"]},
        },
    }
    assert console_types.declare("Thing", schema) == (
        "export interface Thing {\n"
        "  name: string;\n"
        '  "if-match"?: number | null;\n'
        "  parts?: (Run | null)[];\n"
        "  tags?: Record<string, string>;\n"
        '  kind?: "a" | "b";\n'
        "}\n"
    )


def test_names_of_typescript_itself_are_changed() -> None:
    assert console_types.declare("Record", {"type": "string"}) == "export type RecordOfWork = string;\n"
    assert console_types.type_of({"$ref": "#/components/schemas/Error"}) == "Refusal"
