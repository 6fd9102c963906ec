"""The local cloud keeps partitions sorted; its answers to queries equal those of ministack without this."""

from __future__ import annotations

import importlib.util
import json
import random
from types import ModuleType
from typing import Any

import pytest
from ministack.services import dynamodb

from infra.local import sorted_partitions

KEYS = ("pk", "sk", "part", "wake", "date_of", "amount")
NUMBERS = ("amount",)
RANGES = {None: ("pk", "sk"), "by-at": ("part", "wake"), "by-size": ("part", "amount"), "by-day": ("date_of", None)}
CONDITIONS = (
    "#h = :h",
    "#h = :h AND #r = :a",
    "#h = :h AND #r < :a",
    "#h = :h AND #r <= :a",
    "#h = :h AND #r > :a",
    "#r >= :a AND #h = :h",
    "#h = :h AND #r BETWEEN :a AND :b",
    "#h = :h AND begins_with(#r, :a)",
    "#h = :h AND :a < #r",  # in a form that is not looked up
    "#h = :h AND #x = :a",
    "#h = :h AND #r = #h",
)


def test_random_queries_answer_as_without_the_order() -> None:
    chance = random.Random(7)
    plain, ordered = _module(), _module()
    sorted_partitions.install(ordered)
    both = (plain, ordered)
    _same(both, "_create_table", _table())
    answered = refused = pages = 0
    for _ in range(500):
        if chance.random() < 0.6:
            _write(chance, both)
            continue
        asked = _query(chance)
        for _ in range(4):
            status, answer = _same(both, "_query", asked)
            answered, refused = answered + (status == 200), refused + (status != 200)
            if "LastEvaluatedKey" not in answer:
                break
            pages += 1
            asked = {**asked, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
            if chance.random() < 0.5:
                _write(chance, both)
    assert answered > 150
    assert refused > 10
    assert pages > 50


@pytest.mark.parametrize("backward", [False, True])
def test_a_page_of_one_megabyte_ends_where_it_did(backward: bool) -> None:
    both = (_module(), _module())
    sorted_partitions.install(both[1])
    _same(both, "_create_table", _table())
    for number in range(8):
        item = {**_item("a", f"{number}"), "text": {"S": "x" * 200_000}}
        _same(both, "_put_item", {"TableName": "rows", "Item": item})
    asked = {"TableName": "rows", "KeyConditionExpression": "pk = :a", "ScanIndexForward": not backward, "Limit": 7}
    _, answer = _same(both, "_query", {**asked, "ExpressionAttributeValues": {":a": {"S": "a"}}})
    assert answer["Count"] == 5
    assert answer["LastEvaluatedKey"]["sk"] == {"S": "3" if backward else "4"}


def test_a_replaced_table_is_put_in_order_again() -> None:
    both = (_module(), _module())
    sorted_partitions.install(both[1])
    _same(both, "_create_table", _table())
    chance = random.Random(3)
    asked = {"TableName": "rows", "IndexName": "by-at", "KeyConditionExpression": "part = :a"}
    asked |= {"ExpressionAttributeValues": {":a": {"S": "h1"}}}
    for _ in range(60):
        _write(chance, both)
    assert _same(both, "_query", asked)[1]["Count"] > 0
    for module in both:
        module._tables.get("rows")["items"].clear()
        module._items_replaced(module._tables.get("rows"))
    assert _same(both, "_query", asked)[1]["Count"] == 0
    _write(chance, both)
    _same(both, "_query", asked)


def test_a_page_of_a_large_partition_checks_only_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    module, checked = _module(), []
    evaluate = module._evaluate_condition

    def counted(text: str, item: dict[str, Any], *more: Any, **options: Any) -> Any:
        checked.append(item["sk"]["S"])
        return evaluate(text, item, *more, **options)

    monkeypatch.setattr(module, "_evaluate_condition", counted)
    sorted_partitions.install(module)
    module._create_table(_table())
    for number in range(500):
        module._put_item({"TableName": "rows", "Item": _item("a", f"{number:03d}")})
    asked = {"TableName": "rows", "KeyConditionExpression": "pk = :a AND sk > :b", "Limit": 10}
    status, _, body = module._query({**asked, "ExpressionAttributeValues": {":a": {"S": "a"}, ":b": {"S": "250"}}})

    expected = [f"{number:03d}" for number in range(251, 261)]
    assert status == 200
    assert [item["sk"]["S"] for item in json.loads(body)["Items"]] == expected
    assert checked == expected


def _module() -> ModuleType:
    """ministack's DynamoDB with tables of its own."""
    spec = importlib.util.find_spec(dynamodb.__name__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _same(both: tuple[ModuleType, ModuleType], call: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The answer of both modules, which is the same apart from their own ids and times."""
    (status, _, body), (other_status, _, other) = (getattr(each, call)(json.loads(json.dumps(asked))) for each in both)
    first, second = json.loads(body), json.loads(other)
    if call == "_create_table":
        assert status == other_status == 200, first
    else:
        assert (other_status, second) == (status, first), asked
    return status, first


def _table() -> dict[str, Any]:
    def key(*names: str | None) -> list[dict[str, str]]:
        return [
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
            if name
        ]

    kinds: dict[str, dict[str, Any]] = {
        "by-at": {"ProjectionType": "KEYS_ONLY"},
        "by-size": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["text"]},
        "by-day": {"ProjectionType": "ALL"},
    }
    return {
        "TableName": "rows",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": key("pk", "sk"),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "N" if name in NUMBERS else "S"} for name in KEYS
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": name, "KeySchema": key(*RANGES[name]), "Projection": kind} for name, kind in kinds.items()
        ],
    }


def _item(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _value(chance: random.Random, name: str) -> dict[str, str]:
    if name in NUMBERS:
        return {"N": str(chance.choice([-20, -3, 0, 1, 2, 10, 11, 100]))}
    if name in ("pk", "part", "date_of"):
        return {"S": f"h{chance.randrange(3)}"}
    return {"S": "".join(chance.choice(["a", "b", "é", "#", "9", "🂡"]) for _ in range(chance.randrange(1, 4)))}


def _write(chance: random.Random, both: tuple[ModuleType, ModuleType]) -> None:
    keys = {name: _value(chance, name) for name in ("pk", "sk")}
    more = {name: _value(chance, name) for name in KEYS[2:] if chance.random() < 0.8}
    action = chance.random()
    if action < 0.2:
        _same(both, "_delete_item", {"TableName": "rows", "Key": keys})
    elif action < 0.4:
        name = chance.choice(KEYS[2:])
        update = {"TableName": "rows", "Key": keys, "UpdateExpression": "SET #a = :a", "ReturnValues": "ALL_NEW"}
        names, values = {"#a": name}, {":a": _value(chance, name)}
        _same(both, "_update_item", {**update, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values})
    else:
        _same(both, "_put_item", {"TableName": "rows", "Item": {**keys, **more, "text": {"S": "x"}}})


def _query(chance: random.Random) -> dict[str, Any]:
    index = chance.choice(list(RANGES))
    hash_name, range_name = RANGES[index]
    condition = chance.choice(CONDITIONS) if range_name else "#h = :h"
    known = {"#h": hash_name, "#r": range_name, "#x": "text"}
    values = {":h": _value(chance, hash_name or ""), ":a": _value(chance, range_name or "x")}
    values |= {":b": _value(chance, range_name or "x")}
    asked: dict[str, Any] = {"TableName": "rows", "KeyConditionExpression": condition}
    asked["ExpressionAttributeNames"] = {sign: name for sign, name in known.items() if sign in condition}
    asked["ExpressionAttributeValues"] = {sign: content for sign, content in values.items() if sign in condition}
    asked |= {"IndexName": index} if index else {}
    asked |= {"Limit": chance.randrange(1, 6)} if chance.random() < 0.6 else {}
    asked |= {"ScanIndexForward": False} if chance.random() < 0.5 else {}
    asked |= {"FilterExpression": "attribute_exists(amount)"} if chance.random() < 0.2 else {}
    return asked
