"""Chalice's template and this repository's become one: by pure functions, with an error for every conflict."""

from copy import deepcopy
from typing import Any

import pytest

from infra import template

CHALICE: dict[str, Any] = {
    "Outputs": {"RestAPIId": {"Value": {"Ref": "RestAPI"}}},
    "Resources": {
        "RunState": {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "CodeUri": "./deployment.zip",
                "Timeout": 60,
                "Tags": {"aws-chalice": "x"},
                "Events": {"E": {"Type": "SQS", "Properties": {"Queue": {"Fn::Sub": "arn:..:q"}, "BatchSize": 10}}},
            },
        }
    },
}
POLICY = {"run_state": {"Statement": [{"Effect": "Allow", "Action": "a:B", "Resource": "r"}]}}


def test_merging_changes_no_input() -> None:
    before = deepcopy(CHALICE)
    template.assemble(CHALICE, [{"Resources": {"RunState": {"Properties": {"Timeout": 1}}}}], POLICY)
    assert before == CHALICE


def test_a_fragment_overrides_what_chalice_wrote() -> None:
    fragment = {"Resources": {"RunState": {"Properties": {"Timeout": 5}}, "Q": {"Type": "AWS::SQS::Queue"}}}
    merged = template.assemble(CHALICE, [fragment], POLICY)
    assert merged["Resources"]["RunState"]["Properties"]["Timeout"] == 5
    assert merged["Resources"]["RunState"]["Properties"]["CodeUri"] == "./deployment.zip"
    assert merged["Resources"]["Q"] == {"Type": "AWS::SQS::Queue"}


def test_an_intrinsic_is_replaced_as_a_whole() -> None:
    assert template.merge({"Queue": {"Fn::Sub": "a"}}, {"Queue": {"Fn::GetAtt": ["Q", "Arn"]}}) == {
        "Queue": {"Fn::GetAtt": ["Q", "Arn"]}
    }
    assert template.merge({"A": {"b": 1}}, {"A": {"Ref": "C"}}) == {"A": {"Ref": "C"}}


def test_lists_are_replaced_not_joined() -> None:
    assert template.merge({"a": [1, 2]}, {"a": [3]}) == {"a": [3]}


def test_a_value_may_be_replaced_by_null() -> None:
    assert template.merge({"a": 1}, {"a": None}) == {"a": None}


def test_every_lambda_gets_its_own_role_and_log() -> None:
    merged = template.assemble(CHALICE, [], POLICY)["Resources"]
    assert merged["RunState"]["Properties"]["Role"] == {"Fn::GetAtt": ["RunStateRole", "Arn"]}
    statements = merged["RunStateRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    assert [s["Action"] for s in statements] == [["logs:CreateLogStream", "logs:PutLogEvents"], "a:B"]
    assert statements[0]["Resource"] == {"Fn::GetAtt": ["RunStateLog", "Arn"]}


def test_a_lambda_may_share_the_role_and_log_of_another() -> None:
    chalice = deepcopy(CHALICE)
    chalice["Resources"]["Other"] = {"Type": "AWS::Serverless::Function", "Properties": {"Role": "replaced"}}
    shared = {"Role": {"Fn::GetAtt": ["RunStateRole", "Arn"]}, "LoggingConfig": {"LogGroup": {"Ref": "RunStateLog"}}}
    merged = template.assemble(chalice, [{"Resources": {"Other": {"Properties": shared}}}], POLICY)["Resources"]
    assert shared.items() <= merged["Other"]["Properties"].items()
    assert merged["Other"]["Properties"]["FunctionName"] == {"Fn::Sub": "${AWS::StackName}-other"}
    assert not {"OtherRole", "OtherLog"} & set(merged)
    with pytest.raises(template.TemplateError, match="has other, but app.py has no such handler"):
        template.assemble(
            chalice, [{"Resources": {"Other": {"Properties": shared}}}], POLICY | {"other": {"Statement": []}}
        )


@pytest.mark.parametrize(
    "alone", [{"Role": {"Fn::GetAtt": ["OtherRole", "Arn"]}}, {"LoggingConfig": {"LogGroup": {"Ref": "OtherLog"}}}]
)
def test_a_lambda_that_shares_only_a_role_or_a_log_is_refused(alone: dict[str, object]) -> None:
    with pytest.raises(template.TemplateError, match=f"gives RunState a {next(iter(alone))} alone. Expected Role and"):
        template.assemble(CHALICE, [{"Resources": {"RunState": {"Properties": alone}}}], POLICY)


def test_chalice_outputs_are_replaced_by_ours() -> None:
    merged = template.assemble(CHALICE, [{"Outputs": {"ApiUrl": {"Value": "x"}}}], POLICY)
    assert list(merged["Outputs"]) == ["ApiUrl"]


def test_a_lambda_without_a_policy_is_refused() -> None:
    with pytest.raises(
        template.TemplateError, match=r"run_state without a policy. Write infra/policies/run_state.yaml"
    ):
        template.assemble(CHALICE, [], {})


def test_a_policy_without_a_lambda_is_refused() -> None:
    with pytest.raises(template.TemplateError, match="tock, but app.py has no such handler .*. Handlers: run_state"):
        template.assemble(CHALICE, [], POLICY | {"tock": {"Statement": []}})


def test_a_fragment_for_a_lambda_missing_in_app_py_is_refused() -> None:
    with pytest.raises(template.TemplateError, match="refers to Chekc, which app.py does not define"):
        template.assemble(CHALICE, [{"Resources": {"Chekc": {"Properties": {"Timeout": 1}}}}], POLICY)


@pytest.mark.parametrize(
    ("logical_id", "handler"), [("APIHandler", "api"), ("Tick", "tick"), ("RunState", "run_state")]
)
def test_the_handler_of_a_logical_id_is_derived(logical_id: str, handler: str) -> None:
    assert template.handler_of(logical_id) == handler


def test_code_is_moved_to_s3_for_every_lambda() -> None:
    moved = template.with_code_at(CHALICE, "bucket", "key.zip")
    assert moved["Resources"]["RunState"]["Properties"]["CodeUri"] == {"Bucket": "bucket", "Key": "key.zip"}
    assert CHALICE["Resources"]["RunState"]["Properties"]["CodeUri"] == "./deployment.zip"
