"""The local cloud caches results of ministack's text functions; the cached results equal new ones."""

from __future__ import annotations

import copy
import functools
import json
from types import SimpleNamespace

import pytest
from ministack.core import iam_actions, iam_evaluator
from ministack.services import dynamodb

from infra.local.aws import TEXT_FUNCTIONS, _check_once, _parsed_once, _remember

EXPRESSION = "rev = :rev AND (attribute_not_exists(closed) OR closed = :closed)"
ARGUMENTS = {
    "_tokenize": (EXPRESSION,),
    "_condition_syntax_error": ("rev = = :rev", "ConditionExpression"),
    "_ddb_canonicalize_number": ("0100.50",),
    "_number_size_bytes": ("-1795000000000",),
}


@pytest.mark.parametrize("name", TEXT_FUNCTIONS)
def test_a_cached_answer_equals_a_fresh_one(name: str) -> None:
    remembered, plain = _remembered(), getattr(dynamodb, name)
    first = getattr(remembered, name)(*ARGUMENTS[name])

    assert first == plain(*ARGUMENTS[name])
    assert getattr(remembered, name)(*ARGUMENTS[name]) is first


def test_reading_an_expression_does_not_change_the_cache() -> None:
    tokens = dynamodb._tokenize(EXPRESSION)
    before = copy.deepcopy(tokens)
    item, values = {"rev": {"N": "1"}}, {":rev": {"N": "1"}, ":closed": {"BOOL": False}}

    assert dynamodb._ExprEval(tokens, item, values, {}).evaluate()
    assert dynamodb._check_reserved_keyword_usage(tokens) is None
    assert dynamodb._check_redundant_parens(tokens) is None
    assert tokens == before


def test_the_tables_of_a_request_are_found_once_and_cached() -> None:
    actions = SimpleNamespace(dynamodb_resource_arns=iam_actions.dynamodb_resource_arns)
    _remember(_functions(), actions)
    body = json.dumps({"RequestItems": {"jobs": []}}).encode()

    answer = actions.dynamodb_resource_arns(body, "us-east-1", "000000000000")
    assert answer == iam_actions.dynamodb_resource_arns(body, "us-east-1", "000000000000")
    assert actions.dynamodb_resource_arns(body, "us-east-1", "000000000000") is answer
    assert isinstance(actions.dynamodb_resource_arns, functools._lru_cache_wrapper)


def test_a_transaction_needs_each_permission_once_in_its_order() -> None:
    items = [
        {"Put": {"TableName": "jobs"}},
        {"ConditionCheck": {"TableName": "catalog"}},
        {"Put": {"TableName": "jobs"}},
        {"Put": {"TableName": "runs"}},
        {"ConditionCheck": {"TableName": "catalog"}},
    ]
    request = (
        "dynamodb:TransactWriteItems",
        json.dumps({"TransactItems": items}).encode(),
        "us-east-1",
        "000000000000",
    )
    every = iam_actions.dynamodb_transaction_checks(*request)
    once = _check_once(iam_actions.dynamodb_transaction_checks)(*request)
    assert len(every) == 5
    assert once == [every[0], every[1], every[3]]
    assert _check_once(iam_actions.dynamodb_transaction_checks)("dynamodb:Query", b"{}", "us-east-1", "0") == []


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("#pk, #mode,#absent", {"#pk": "pk", "#mode": "mode", "#absent": "absent"}),
        ("pk, #mode", {"#mode": "mode"}),
        ("#notes.#first, #list[0]", {"#notes": "notes", "#first": "first", "#list": "list"}),
        ("", {}),
    ],
)
def test_a_projection_is_as_without_the_cache(expression: str, names: dict[str, str]) -> None:
    item = {"pk": {"S": "a"}, "mode": {"S": "open"}, "rev": {"N": "1"}, "list": {"L": [{"S": "x"}, {"S": "y"}]}}
    item["notes"] = {"M": {"first": {"S": "z"}, "second": {"S": "z"}}}
    project = _remembered()._project_item
    assert project(item, expression, names) == dynamodb._project_item(item, expression, names)
    assert project(item, expression, names) == project(item, expression, names)


@pytest.mark.parametrize(
    ("expression", "names"), [("#a, #b", {"#a": "rev", "#b": "rev"}), ("mode, name", {}), ("#a, #a", {"#a": "rev"})]
)
def test_a_wrong_projection_is_refused_as_without_the_cache(expression: str, names: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Invalid ProjectionExpression"):
        _remembered()._project_item({"rev": {"N": "1"}}, expression, names)


def _functions() -> SimpleNamespace:
    return SimpleNamespace(**{name: getattr(dynamodb, name) for name in (*TEXT_FUNCTIONS, "_project_item")})


def _remembered() -> SimpleNamespace:
    functions = _functions()
    _remember(functions, SimpleNamespace(dynamodb_resource_arns=iam_actions.dynamodb_resource_arns))
    return functions


def test_a_policy_that_is_parsed_once_equals_one_parsed_anew() -> None:
    document = {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
    text = json.dumps(document)
    parse = _parsed_once(iam_evaluator.parse_policy_document)
    assert parse(text) == parse(document) == iam_evaluator.parse_policy_document(text)
    assert parse(text) is parse(text)
    assert parse("no policy") == []
