"""Write `sluice/builder_parts.py`: a typed function or class for every document in the app of a deployment, and for
messages.

    python -m infra.builder_code

The source is the OpenAPI document of the API, so that the builder can express each field. A test compares the two.
"""

from __future__ import annotations

import keyword
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PAGE = Path(__file__).resolve().parent.parent / "sluice" / "builder_parts.py"
SCHEMAS = "#/components/schemas/"
HEAD = '''"""The parts of an app, generated from the OpenAPI document of the API by `python -m infra.builder_code`.

Use them by `sluice.builder`. A parameter that is left out is left out of the document, so that its default applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from sluice.builder_base import UNSET, Constrained, Named, Part, given, given_or

'''
ROOTS = ("App", "Message")
# The documents that have a name in an app: the member of the app that holds them. Messages are put one by one.
NAMED = {
    "Dataset": "datasets",
    "Policy": "policies",
    "Pool": "pools",
    "HolidayCalendar": "calendars",
    "Workflow": "workflows",
    "NewSchedule": "schedules",
    "NewDag": "dags",
    "Message": "messages",
}
FUNCTIONS = {"all": "all_of", "any": "any_of"}  # the others are called as their `type`
METHODS = {"workflow": "runs", "trigger": "on", "constraints": "where"}  # of a schedule and a DAG
POSITIONAL = ("count", "expression")  # of the parameters that have a default
SPREAD = "triggers"  # all_of(a, b)


def describe() -> Json:
    """The schemas of the API, by name."""
    from chalicelib.web.routes import openapi

    schemas: Json = openapi.describe()["components"]["schemas"]
    return schemas


def reachable(schemas: Json) -> list[str]:
    """The schemas of messages and of an app's parts, without that of the app, in order."""
    found = set(ROOTS) & set(NAMED)

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix(SCHEMAS)
            if name and name not in found:
                found.add(name)
                walk(schemas[name])
        for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            walk(child)

    for start in ROOTS:
        walk(schemas[start])
    return sorted(found)


def types_of(schema: Json) -> list[str]:
    """The values of ``type`` that name a document in a union."""
    kind = schema["properties"].get("type", {})
    return [kind["const"]] if "const" in kind else list(kind.get("enum", ()))


def category(name: str, schemas: Json) -> str:
    """The class of a document: one for all triggers, constraints and targets, as they may stand for each other."""
    constraints = schemas["NewSchedule"]["properties"]["constraints"]["items"]["discriminator"]["mapping"].values()
    if SCHEMAS + name in constraints:
        return "Constraint"
    for word in ("Trigger", "Target", "Probe"):
        if name.endswith(word):
            return word
    return name.removeprefix("New")


def functions_of(name: str, schemas: Json) -> dict[str, str | None]:
    """The functions that make a document, each with its ``type``."""
    types = types_of(schemas[name])
    if not types:
        return {_snake(name): None}
    kind = category(name, schemas)
    return {_function(word, kind): word for word in types}


def _function(word: str, kind: str) -> str:
    if kind == "Probe":
        return f"{word}_probe"
    return FUNCTIONS.get(word) or (f"{word}_function" if keyword.iskeyword(word) else word)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def parameter(field: str) -> str:
    return f"{field}_" if keyword.iskeyword(field) else field


def type_of(schema: Json, schemas: Json) -> str:
    """The Python type of a JSON Schema."""
    if "$ref" in schema:
        return category(str(schema["$ref"]).removeprefix(SCHEMAS), schemas)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(type_of(each, schemas) for each in schema[union]))
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(repr(each) for each in schema['enum'])}]"
    kind = schema.get("type")
    if kind == "array":
        return f"Sequence[{type_of(schema['items'], schemas)}]"
    if kind == "object":
        inside = schema.get("additionalProperties")
        return f"Mapping[str, {type_of(inside, schemas) if isinstance(inside, dict) else 'Any'}]"
    plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    return plain[kind] if isinstance(kind, str) else "Any"


def parameters(schema: Json, schemas: Json, loose: bool = False) -> tuple[str, str]:
    """The parameters of a document's function, and the mapping of its fields. ``loose``: none is required."""
    required = () if loose else schema.get("required", ())
    fields = {field: part for field, part in schema["properties"].items() if field != "type"}
    order = sorted(fields, key=lambda field: (field not in required, field not in POSITIONAL))
    first: list[str] = []
    named: list[str] = []
    spread = SPREAD in fields and not loose
    for field in order:
        kind = type_of(fields[field], schemas)
        if spread and field == SPREAD:
            continue
        if field in required:
            first.append(f"{parameter(field)}: {kind}")
        elif field in POSITIONAL and not loose:
            first.append(f"{parameter(field)}: {kind} = UNSET")
        else:
            named.append(f"{parameter(field)}: {kind} = UNSET")
    middle = ["*triggers: Trigger"] if spread else ["*"] if named else []
    values = {field: f"list({field})" if spread and field == SPREAD else parameter(field) for field in fields}
    inside = ", ".join(f"{field!r}: {value}" for field, value in values.items())
    return ", ".join([*first, *middle, *named]), inside


def text_of(schema: Json, indent: str) -> str:
    """The docstring of a document. Quotes and backslashes of descriptions are none of Python's."""
    words = " ".join(str(schema.get("description") or f"The part {schema.get('title', '')} of an app.").split())
    lines = textwrap.wrap(words.replace("\\", "/").replace('"""', "'''"), 110 - len(indent))
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""'
    body = "\n".join(f"{indent}{line}" for line in lines)
    return f'{indent}"""{body.lstrip()}\n{indent}"""'


def code(schemas: Json) -> str:
    """The text of the module, not yet formatted."""
    names = reachable(schemas)
    pieces = [HEAD]
    for kind in sorted({category(name, schemas) for name in names if name not in NAMED}):
        text = f'"""A document of the kind {kind}, made by a function of this module."""'
        pieces.append(f"class {kind}(Part):\n    {text}\n\n")
    made: dict[str, list[str]] = {}
    for name in names:
        if name in NAMED:
            pieces.append("\n".join(_class(name, schemas)))
            made[name] = [category(name, schemas)]
            continue
        for function, kind_word in functions_of(name, schemas).items():
            pieces.append(_make(function, kind_word, name, schemas))
            made.setdefault(name, []).append(function)
    rows = "".join(f"    {name!r}: ({', '.join(each)},),\n" for name, each in made.items())
    listed = sorted({each for names_made in made.values() for each in names_made})
    pieces.append(f"__all__ = {listed!r}\n")
    table = "# The schema of the API -> what makes a document of it.\n"
    pieces.append(f"{table}MADE_BY: dict[str, tuple[Any, ...]] = {{\n{rows}}}\n")
    return "\n\n".join(pieces)


def _make(function: str, word: str | None, name: str, schemas: Json) -> str:
    schema = schemas[name]
    signature, inside = parameters(schema, schemas)
    kind = category(name, schemas)
    start = f"'type': {word!r}, " if word else ""
    head = f"def {function}({signature}) -> {kind}:\n{text_of(schema, '    ')}\n"
    return f"{head}    return {kind}(given({{{start}{inside}}}))\n"


def _class(name: str, schemas: Json) -> Iterator[str]:
    schema, kind = schemas[name], category(name, schemas)
    base = "Constrained" if "constraints" in schema["properties"] else "Named"
    yield f"class {kind}({base}):\n{text_of(schema, '    ')}\n"
    yield f"    group = {NAMED[name]!r}\n"
    for field, part in schema["properties"].items():
        yield _method(field, part, schemas, name)
    if "constraints" in schema["properties"]:
        mapping = schema["properties"]["constraints"]["items"]["discriminator"]["mapping"]
        for word, ref in mapping.items():
            one = schemas[ref.removeprefix(SCHEMAS)]
            signature, inside = parameters(one, schemas)
            yield (
                f"    def {word}(self, {signature}) -> Self:\n{text_of(one, ' ' * 8)}\n"
                f"        return self._append('constraints', Constraint(given({{'type': {word!r}, {inside}}})))\n"
            )


def method_of(field: str, name: str) -> str:
    """The method of a named document that sets a field."""
    return METHODS.get(field, field) if name in ("NewSchedule", "NewDag") else parameter(field)


def _method(field: str, part: Json, schemas: Json, name: str) -> str:
    method, kind = method_of(field, name), type_of(part, schemas)
    text = f'        """Set ``{field}``."""\n'
    options = (part, *part.get("anyOf", ()), *part.get("oneOf", ()))
    inner = [str(each["$ref"]).removeprefix(SCHEMAS) for each in options if "$ref" in each]
    if len(inner) == 1 and not types_of(schemas[inner[0]]):
        one = schemas[inner[0]]
        signature, inside = parameters(one, schemas, loose=True)
        return (
            f"    def {method}(self, value: {kind} = UNSET, /, {signature}) -> Self:\n"
            f'        """Set ``{field}``: to a value, or to one of these fields."""\n'
            f"        return self._set({field!r}, given_or(value, {{{inside}}}))\n"
        )
    if part.get("type") == "array":
        each = type_of(part["items"], schemas)
        act = "_extend" if field in ("constraints", "edges", "notify") else "_set"
        head = f"    def {method}(self, *values: {each}) -> Self:\n{text}"
        return f"{head}        return self.{act}({field!r}, list(values))\n"
    if part.get("type") == "object":
        member = part.get("additionalProperties")
        each = type_of(member, schemas) if isinstance(member, dict) else "Any"
        return (
            f"    def {method}(self, values: Mapping[str, {each}] | None = None, /, **more: {each}) -> Self:\n"
            f'        """Add to ``{field}``."""\n'
            f"        return self._merge({field!r}, values, more)\n"
        )
    return f"    def {method}(self, value: {kind}) -> Self:\n{text}        return self._set({field!r}, value)\n"


def formatted(text: str) -> str:
    """The text as ruff formats it."""
    command = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(PAGE), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    PAGE.write_text(formatted(code(describe())))
    print(PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
