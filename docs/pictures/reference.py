"""The tables of docs/reference.md: every field of an app document, made from the models.

python -m docs.pictures.reference        writes them between their markers

Types, defaults and allowed values are those of the models; `meanings.yaml` has a sentence for each field.
`tests/test_docs.py` fails when the page and the models say different things.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import AfterValidator, TypeAdapter
from pydantic.fields import FieldInfo

from chalicelib.core.constraints.load import Measured, Metric
from chalicelib.core.constraints.probe import HttpProbe, LambdaProbe
from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dag import DagConcurrency, Edge, NewDag, Node
from chalicelib.core.definitions.dataset import Dataset, Readiness
from chalicelib.core.definitions.each import Each
from chalicelib.core.definitions.incomplete import Incomplete
from chalicelib.core.definitions.notify import Notify, QuietHours
from chalicelib.core.definitions.per import Per
from chalicelib.core.definitions.period import PeriodRule
from chalicelib.core.definitions.schedule import CatchUp, NewSchedule, Spread, Timeout
from chalicelib.core.definitions.workflow import Deadline, Registered, Workflow
from chalicelib.core.documents import Document, types_of
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool, Share
from chalicelib.core.targets.registry import TARGETS
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.retries import Backoff, Delivery, Retries
from chalicelib.core.targets.secrets import SecretReference, SecretUrl
from chalicelib.core.triggers.registry import LEAVES
from chalicelib.core.triggers.tree import AllTrigger, AnyOfTrigger, AtLeastTrigger
from chalicelib.core.triggers.windows import Around, Last
from chalicelib.core.why import CODES
from sluice import yaml12

PAGE = Path(__file__).parents[1] / "reference.md"
WORDS = Path(__file__).with_name("meanings.yaml")
BEGIN, END = "<!-- fields -->\n", "<!-- end of fields -->"
LONGEST_PATTERN = 30  # characters; a longer one says less than a sentence
# What a validator of a text says about it.
KINDS = {
    "_check_duration": "duration",
    "check_name": "name",
    "check_reference": "name of a definition",
    "check_stored": "name of a definition",
    "_check_when": "instant or span",
    "_check_life": "instant or span",
}


class Section(NamedTuple):
    """A heading, the page with its rules, and models under it: each by its own heading."""

    heading: str
    page: str
    models: tuple[tuple[str, type[Document]], ...]


def _by_type(word: str, models: Iterable[type[Document]]) -> tuple[tuple[str, type[Document]], ...]:
    return tuple((f"{word} {types_of(model)[0]}", model) for model in models)


SECTIONS = (
    Section("App", "lifecycle.md", (("App document", App),)),
    Section(
        "Dataset",
        "triggers.md#partition",
        (("Dataset document", Dataset), ("Readiness", Readiness), ("Period", PeriodRule)),
    ),
    Section(
        "Workflow",
        "lifecycle.md",
        (
            ("Workflow document", Workflow),
            ("Retries", Retries),
            ("Delivery", Delivery),
            ("Backoff", Backoff),
            ("Resources", Resources),
            ("Deadline", Deadline),
            ("Notify", Notify),
            ("QuietHours hours", QuietHours),
            ("Registered", Registered),
        ),
    ),
    Section(
        "Schedule",
        "lifecycle.md",
        (
            ("Schedule document", NewSchedule),
            ("Timeout", Timeout),
            ("Catch-up", CatchUp),
            ("Spread", Spread),
            ("Jobs of periods", Per),
            ("Incomplete periods", Incomplete),
        ),
    ),
    Section(
        "Trigger",
        "triggers.md",
        (
            *_by_type("Trigger", (*LEAVES, AllTrigger, AnyOfTrigger, AtLeastTrigger)),
            ("Last periods", Last),
            ("Window", Around),
        ),
    ),
    Section(
        "Constraint",
        "constraints.md",
        (
            *_by_type("Constraint", CONSTRAINTS),
            ("Measured", Measured),
            ("Metric", Metric),
            *_by_type("Probe of", (LambdaProbe, HttpProbe)),
        ),
    ),
    Section(
        "Target",
        "targets.md",
        (*_by_type("Target", TARGETS), ("Secret reference", SecretReference), ("Secret address", SecretUrl)),
    ),
    Section(
        "DAG",
        "dags.md",
        (
            ("DAG document", NewDag),
            ("Concurrency of a DAG", DagConcurrency),
            ("Node", Node),
            ("Each", Each),
            ("Edge", Edge),
        ),
    ),
    Section("Holiday calendar", "time.md", (("Holiday calendar document", HolidayCalendar),)),
    Section("Policy and pool", "pools.md", (("Policy document", Policy), ("Pool document", Pool), ("Share", Share))),
)
HEADINGS = {model.__name__: heading for section in SECTIONS for heading, model in section.models}
UNIONS = {
    section.heading: {model.__name__ for heading, model in section.models if heading.startswith(section.heading)}
    for section in SECTIONS
    if section.heading in ("Trigger", "Constraint", "Target")
}


def page_part() -> str:
    """All tables, section by section. Raises `ValueError` for a field without a meaning, or the other way round."""
    schema = App.model_json_schema(mode="validation")
    schemas: dict[str, Any] = {"App": schema, **schema["$defs"]}
    words: dict[str, dict[str, str]] = yaml12.load(WORDS.read_text())
    _check(schemas, words)
    parts: list[str] = []
    for section in SECTIONS:
        parts.append(f"## {section.heading}\nRules and examples: [{section.page.partition('#')[0]}]({section.page}).\n")
        for heading, model in section.models:
            rows = "\n".join(_rows(model, schemas[model.__name__], words))
            parts.append(
                f"### {heading}\n{_summary(model)}\n\n"
                f"| field | type | default | allowed | meaning |\n|---|---|---|---|---|\n{rows}\n"
            )
    codes = "\n".join(f"| `{code}` | {meaning} |" for code, meaning in CODES.items())
    parts.append(
        "## Codes of reasons\nThe `code` beside a `reason` or a `why`, which stays the same when a sentence changes. "
        "A job that waits for a constraint has the type of the constraint as its code.\n\n"
        f"| code | meaning |\n|---|---|\n{codes}\n"
    )
    return "\n".join(parts)


def with_fields(text: str) -> str:
    """The page with the tables as the models have them."""
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"expected one place for the fields in {PAGE.name}, found none")
    return f"{before}{BEGIN}{page_part()}{END}{after}"


def _check(schemas: Mapping[str, Any], words: Mapping[str, Mapping[str, str]]) -> None:
    unlisted = sorted(set(schemas) - set(HEADINGS))
    fields = {(name, field) for name in HEADINGS for field in schemas[name].get("properties", {})}
    explained = {(name, field) for name, meanings in words.items() if name != "any" for field in meanings}
    lacking = sorted(each for each in fields - explained if each[1] not in words["any"])
    stale = sorted(explained - fields)
    if unlisted or lacking or stale:
        raise ValueError(
            f"expected a heading for each model and a meaning for each field; add {unlisted} to SECTIONS, "
            f"and in {WORDS.name} add {lacking} and remove {stale}"
        )


def _rows(model: type[Document], schema: Mapping[str, Any], words: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    listed = schema["properties"]  # a field that only stored documents have is not among them
    fields = {name: info for own, info in model.model_fields.items() if (name := info.alias or own) in listed}
    ordered = [
        *(name for name in fields if name not in words["any"]),
        *(name for name in fields if name in words["any"]),
    ]
    if "type" in fields:
        ordered = ["type", *(name for name in ordered if name != "type")]
    for name in ordered:
        shape = schema["properties"][name]
        meaning = words.get(model.__name__, {}).get(name) or words["any"][name]
        cells = (f"`{name}`", _type(shape, fields[name]), _default(fields[name]), _allowed(shape), meaning)
        yield f"| {' | '.join(cell.replace('|', ' or ') if cell is not meaning else cell for cell in cells)} |"


def _summary(model: type[Document]) -> str:
    """The first sentence of the model's own description, without requirement ids."""
    text = " ".join((model.__doc__ or "").split())
    text = re.sub(r" \((?:[LTCEWHO]\d+(?:, )?)+\)|`SqsTarget`", "", text).replace(" (see )", "").replace("``", "`")
    text = text.replace("(None: ", "(by default ")
    return re.split(r"(?<=\.)\s", text)[0]


def _type(shape: Mapping[str, Any], info: FieldInfo) -> str:
    return _shape(shape, next((word for name, word in KINDS.items() if name in _validators(info)), "text"))


def _shape(shape: Mapping[str, Any], text: str) -> str:
    options = [each for each in (shape.get("anyOf") or shape.get("oneOf") or ()) if each.get("type") != "null"]
    names = {str(each.get("$ref", "")).rpartition("/")[2] for each in options}
    for union, members in UNIONS.items():
        if options and names <= members:
            return f"[{union.lower()}](#{union.lower()})"
    if options:
        return " or ".join(dict.fromkeys(_shape(each, text) for each in options))
    if "$ref" in shape:
        heading = HEADINGS[shape["$ref"].rpartition("/")[2]]
        return f"[{heading.removesuffix(' document')}](#{heading.lower().replace(' ', '-')})"
    match shape.get("type"):
        case "string":
            return f"`{shape['const']}`" if shape.get("const") == "never" else text
        case "array":
            return f"list of {_shape(shape['items'], text)}"
        case "object":
            inner = shape.get("additionalProperties")
            return f"map to {_shape(inner, 'text')}" if isinstance(inner, dict) else "object"
        case kind:
            return str(kind) if kind else "any JSON"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "-"
    plain = TypeAdapter(Any).dump_python(value, mode="json", exclude_defaults=isinstance(value, Document))
    if isinstance(value, Document) and not plain:
        return "its defaults"
    if isinstance(plain, str):
        return f"`{plain}`" if plain else "empty"
    return f"`{json.dumps(plain)}`"


def _allowed(shape: Mapping[str, Any]) -> str:
    options = shape.get("anyOf") or [shape]
    found = [word for each in options for word in _bounds(each)]
    return ", ".join(dict.fromkeys(found)) or "-"


def _bounds(shape: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"`{value}`" for value in shape.get("enum", ()))
    if "const" in shape:
        yield f"`{shape['const']}`"
    least, most = shape.get("minimum"), shape.get("maximum")
    if least is not None or most is not None:
        yield f"{least} to {most:,}" if most is not None else f"at least {least}"
    for name, unit in (("maxLength", "characters"), ("maxItems", "entries"), ("maxProperties", "entries")):
        if name in shape:
            yield f"at most {shape[name]:,} {'entries' if shape.get('type') == 'object' else unit}"
    if len(shape.get("pattern", " " * 99)) <= LONGEST_PATTERN:
        yield f"`{shape['pattern']}`"
    if isinstance(shape.get("items"), dict):
        yield from _bounds(shape["items"])


def _validators(info: FieldInfo) -> set[str]:
    """The names of the functions that check a field, its members, or its items."""
    found = {each.func.__name__ for each in info.metadata if isinstance(each, AfterValidator)}
    pending: list[Any] = [info.annotation]
    while pending:
        annotation = pending.pop()
        if get_origin(annotation) is Annotated:
            inner, *metadata = get_args(annotation)
            found |= {each.func.__name__ for each in metadata if isinstance(each, AfterValidator)}
            pending.append(inner)
        elif get_origin(annotation) in (Union, UnionType, tuple):
            pending += get_args(annotation)
    return found


if __name__ == "__main__":
    PAGE.write_text(with_fields(PAGE.read_text()))
