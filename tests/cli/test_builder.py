"""`sluice.builder` (L15): it expresses every field of an app that the API describes. YAML is the same document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra import builder_code
from infra.builder_code import NAMED, SCHEMAS, functions_of, method_of, parameter, reachable, types_of
from sluice import Client, builder, documents, yaml12
from sluice.builder import all_of, app, concurrency, emr_serverless, event, partition, schedule, time, workflow
from sluice.builder_parts import MADE_BY
from sluice.errors import WrongUsage
from sluice.testing import App as AppUnderTest
from tests.cli.played_api import PlayedApi

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]
API = builder_code.describe()
OF_APPS = {schema: group for schema, group in NAMED.items() if group in builder.GROUPS}


def express(value: Any, schema: Json) -> Any:
    """A value, made by the calls of the builder that its schema has."""
    options = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if isinstance(value, dict):
        names = [str(each["$ref"]).removeprefix(SCHEMAS) for each in options if "$ref" in each]
        for name in names:
            types = types_of(API[name])
            if not types or value.get("type") in types:
                return made(name, value)
        inside = [
            each["additionalProperties"] for each in options if isinstance(each.get("additionalProperties"), dict)
        ]
        return {key: express(each, inside[0]) if inside else each for key, each in value.items()}
    if isinstance(value, list):
        items = next((each["items"] for each in options if "items" in each), {})
        return [express(each, items) for each in value]
    return value


def made(name: str, value: Json) -> Any:
    fields = API[name]["properties"]
    [function] = [each for each, word in functions_of(name, API).items() if word == value.get("type")]
    arguments = {parameter(field): express(each, fields[field]) for field, each in value.items() if field != "type"}
    triggers = arguments.pop("triggers", [])
    first = [arguments.pop("count")] if triggers and "count" in arguments else []
    return getattr(builder, function)(*first, *triggers, **arguments)


def named(schema: str, name: str, value: Json) -> Any:
    """A named document, made by one call for each field."""
    part = {cls.group: cls for cls in (*builder.KINDS, builder.Message)}[NAMED[schema]](name)
    for field, each in value.items():
        spec = API[schema]["properties"][field]
        method, given_value = getattr(part, method_of(field, schema)), express(each, spec)
        assert (method(*given_value) if spec.get("type") == "array" else method(given_value)) is part
    return part


def app_of(document: Json) -> builder.App:
    own = {field: express(value, API["App"]["properties"][field])
           for field, value in document.items() if field not in builder.GROUPS}  # fmt: skip
    made_app = builder.App(**own)
    for schema, group in OF_APPS.items():
        for name, value in document.get(group, {}).items():
            made_app.add(named(schema, name, value))
    return made_app


def smallest(schema: Json) -> Any:
    """A value of a schema's form, as small as it goes. The patterns of texts do not matter to the builder."""
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(SCHEMAS)
        kinds = types_of(API[name])
        needed = [field for field in API[name].get("required", ()) if field != "type"]
        own = {field: smallest(API[name]["properties"][field]) for field in needed}
        return ({"type": kinds[0]} if kinds else {}) | own
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return smallest(next((each for each in schema[union] if "$ref" not in each), schema[union][0]))
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if schema.get("type") == "array":
        return [smallest(schema["items"])]
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return {"k": smallest(inside) if isinstance(inside, dict) else 1}
    return {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "null": None}.get(str(schema.get("type")), 1)


def every_field() -> list[tuple[str, str]]:
    return [(name, field) for name in reachable(API) for field in API[name]["properties"] if field != "type"]


@pytest.mark.parametrize(("name", "field"), every_field())
def test_l15_the_builder_expresses_every_field_of_an_app(name: str, field: str) -> None:
    options = API[name]["properties"][field]
    variants = [each for union in ("anyOf", "oneOf") for each in options.get(union, ())] or [options]
    for variant in variants:
        value = smallest({"$ref": SCHEMAS + name}) | {field: smallest(variant)}
        built = named(name, "x", value).document() if name in NAMED else made(name, value)
        assert built == value


def test_l15_an_app_has_no_field_beside_those_of_the_builder() -> None:
    own = {"namespace": "n", "app": "a", "description": "d", "tags": {}, "owner": "o", "data_bucket": "b"}
    whole = builder.App(**own, default_target=emr_serverless("s3://c/j.py")).document()
    assert set(whole) | set(builder.GROUPS) == set(API["App"]["properties"])


def test_l15_the_parts_are_those_of_the_present_api() -> None:
    assert set(MADE_BY) == set(reachable(API))
    text = builder_code.formatted(builder_code.code(API))
    assert builder_code.PAGE.read_text() == text, "run `python -m infra.builder_code`"


# -- Round trips ------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def values(schema: Json, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a schema's form."""
    if "$ref" in schema:
        return fields(str(schema["$ref"]).removeprefix(SCHEMAS), depth)
    for union in ("oneOf", "anyOf"):
        if union in schema:
            flat = [each for each in schema[union] if not recursive(each)] if depth > 1 else schema[union]
            return st.one_of([values(each, depth) for each in flat])
    if "const" in schema or "enum" in schema:
        return st.sampled_from([schema["const"]] if "const" in schema else schema["enum"])
    if schema.get("type") == "array":
        return st.lists(values(schema["items"], depth), min_size=1, max_size=2)
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return st.dictionaries(NAMES, values(inside, depth) if isinstance(inside, dict) else JSON, max_size=2)
    plain = {"string": TEXTS, "integer": st.integers(0, 10**9), "number": st.floats(0, 1e6), "boolean": st.booleans()}
    return {**plain, "null": st.none()}.get(str(schema.get("type")), JSON)


def recursive(schema: Json) -> bool:
    return "triggers" in API.get(str(schema.get("$ref", "")).removeprefix(SCHEMAS), {}).get("properties", {})


def fields(name: str, depth: int) -> st.SearchStrategy[Any]:
    schema, kinds = API[name], types_of(API[name])
    own = {field: st.deferred(lambda part=part: values(part, depth + 1))
           for field, part in schema["properties"].items() if field != "type"}  # fmt: skip
    needed = {field: own.pop(field) for field in schema.get("required", ()) if field != "type"}
    kind = {"type": st.sampled_from(kinds)} if kinds else {}
    return st.fixed_dictionaries(kind | needed, optional=own)


@st.composite
def apps(draw: st.DrawFn) -> Json:
    own = {field: part for field, part in API["App"]["properties"].items() if field not in builder.GROUPS}
    document = draw(st.fixed_dictionaries({}, optional={field: values(part) for field, part in own.items()}))
    for schema, group in OF_APPS.items():
        members = draw(st.dictionaries(NAMES, fields(schema, 0), max_size=1))
        document |= {group: members} if members else {}
    return document


SLOW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(document=apps())
def test_l15_yaml_and_builder_round_trip(document: Json, tmp_path_factory: pytest.TempPathFactory) -> None:
    built = app_of(document)
    assert built.document() == document
    path = tmp_path_factory.mktemp("app") / "app.yaml"
    path.write_text(built.yaml())
    assert documents.load(str(path)) == document
    assert builder.App.load(path).document() == document
    assert app_of(builder.App.of(document).document()).yaml() == built.yaml()


@SLOW
@given(document=fields("Message", 0))
def test_l16_a_message_in_yaml_and_its_builder_round_trip(
    document: Json, tmp_path_factory: pytest.TempPathFactory
) -> None:
    built = named("Message", "backup", document)
    assert built.document() == document
    path = tmp_path_factory.mktemp("message") / "backup.yaml"
    path.write_text(built.yaml())
    assert documents.load_plain(str(path)) == document
    assert builder.Message.of_file("backup", path).document() == document


def test_l16_the_builder_makes_each_message_of_the_page() -> None:
    page = (ROOT / "docs" / "messages.md").read_text()
    examples = [yaml12.load(each) for each in re.findall(r"<!-- message: .*? -->\n```yaml\n(.*?)```", page, re.DOTALL)]
    messages = {name: content for each in examples for name, content in each.items()}
    assert len(messages) >= 5
    for name, content in messages.items():
        assert named("Message", name, content).document() == content


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/app.yaml")), ids=lambda path: path.parent.name)
def test_l15_the_builder_makes_each_example(path: Path) -> None:
    document = yaml12.load(path.read_text())
    for each in document.get("schedules", {}).values():
        if "by" in each["trigger"]:  # it may stand there, too
            each["by"] = each["trigger"].pop("by")
    assert app_of(document).document() == {field: value for field, value in document.items() if value != {}}


# -- As a user writes it ----------------------------------------------------------------------------------------------


def flights() -> builder.App:
    return app("demo", "flights").add(
        workflow("clean").target(emr_serverless("s3://code/clean.py")).retries(attempts=2).timeout("2h"),
        builder.dataset("orders").bucket("lake").prefix("orders/").keys("day").ready(done_flag="_SUCCESS"),
        schedule("nightly").runs("clean").on(partition("orders", 4)).concurrency(1).wait_until_met().enabled(True),
        schedule("both").runs("clean").on(all_of(event("a"), event("b"), within="1h")).timeout(after="2h", then="run"),
        schedule("timed").runs("clean").on(time("0 5 * * *", zone="Europe/Paris")).timeout("never").priority(7),
    )


def test_l15_the_example_of_the_requirement_is_its_document() -> None:
    nightly = flights().document()["schedules"]["nightly"]
    assert nightly == {
        "workflow": "clean",
        "trigger": {"type": "partition", "dataset": "orders", "count": 4},
        "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
        "enabled": True,
    }


def test_l15_a_built_app_runs_under_test() -> None:
    under_test = AppUnderTest(flights(), at="2026-03-02T12:00Z")
    for day in range(4):
        under_test.partition("orders", day=str(day))
    assert under_test.run("nightly").state == "STARTING" or under_test.run("nightly").state == "RUNNING"


def test_l15_a_built_app_is_applied(api: PlayedApi) -> None:
    api.play("GET", "/v1/namespaces/demo", {})
    api.play("PUT", "/v1/namespaces/demo/apps/flights", {"created": ["app demo.flights"]})
    assert Client().apply(flights()).changed
    [sent] = api.sent("PUT", "/v1/namespaces/demo/apps/flights")
    assert sent.body == flights().document()


def test_l15_a_part_can_be_changed_later() -> None:
    made = flights()
    made.part("schedules", "nightly").priority(9)
    assert made.document()["schedules"]["nightly"]["priority"] == 9
    found = made.document()
    found["schedules"].clear()
    assert made.document()["schedules"], "a document is a copy"


def test_l15_a_wrong_use_of_the_builder_says_what_to_do() -> None:
    with pytest.raises(WrongUsage, match="expected each name once, got 'nightly' twice"):
        app("demo", "x").add(schedule("nightly"), schedule("nightly"))
    with pytest.raises(WrongUsage, match="expected a constraint before its rule for what is not met, got none"):
        schedule("nightly").wait_until_met()
    with pytest.raises(WrongUsage, match="expected a field of an app, got 'moon'"):
        builder.App.of({"moon": 1})
    with pytest.raises(WrongUsage, match="expected a part of an app, got the message 'backup'"):
        app("demo", "x").add(builder.message("backup"))
    with pytest.raises(TypeError):
        concurrency(1, moon=2)


def test_a_list_in_place_of_single_values_is_refused() -> None:
    edges = [builder.edge("load", "check"), builder.edge("check", "report")]
    assert builder.dag("nightly").edges(*edges).document() == {"edges": edges}
    for act in (builder.dag("nightly").edges, builder.schedule("s").where, builder.workflow("w").notify):
        with pytest.raises(WrongUsage, match="expected each value by itself, got a list") as wrong:
            act(edges)  # type: ignore[operator]  # what the test is about
        assert wrong.value.hint == "write an asterisk before it: (*values)"
    with pytest.raises(WrongUsage, match="expected each value by itself, got a generator"):
        builder.dag("nightly").edges(each for each in edges)  # type: ignore[arg-type]  # what the test is about
    with pytest.raises(WrongUsage, match="expected values by name, got a list"):
        builder.dag("nightly").nodes(["load"])  # type: ignore[arg-type]  # what the test is about
