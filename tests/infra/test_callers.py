"""Who may call the API from other accounts: the resource policy in its definition, and that a change is deployed."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import boto3
import pytest
from ministack.core import iam_evaluator
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

from tests.infra.resolve import Resolver

OWN, LISTED, STRANGE = "123456789012", "210987654321", "333333333333"
API = "arn:aws:execute-api:eu-west-1:123456789012:api/api/GET/v1/namespaces"


def policy_of(template: dict[str, Any], callers: str) -> dict[str, Any]:
    """The resource policy as API Gateway gets it."""
    translated = translate(template, callers)
    found = translated["Resources"]["RestAPI"]["Properties"]["Body"]["x-amazon-apigateway-policy"]
    policy: dict[str, Any] = Resolver(template, {}, CallerAccounts=callers)(found)
    return policy


def translate(template: dict[str, Any], callers: str) -> dict[str, Any]:
    """The template after the transform AWS::Serverless, which knows the values of the parameters."""
    made = deepcopy(template)
    made["Transform"] = "AWS::Serverless-2016-10-31"
    for resource in made["Resources"].values():  # these functions were resolved by the transform before
        for key in ("DeletionPolicy", "UpdateReplacePolicy"):
            resource.pop(key, None)
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    values = {name: str(each.get("Default", "")) for name, each in made["Parameters"].items()}
    session = boto3.Session(region_name="eu-west-1")
    translator = Translator({}, Parser(), boto_session=session)
    translated: dict[str, Any] = translator.translate(made, {**values, "CallerAccounts": callers})
    return translated


def decision(policy: dict[str, Any], account: str, allowed: bool = True, https: bool = True) -> str:
    """What IAM decides about a user whose own policies allow the call, or say nothing of it."""
    asked = iam_evaluator.EvalContext(
        principal_arn=f"arn:aws:iam::{account}:user/ann",
        principal_type="User",
        principal_account=account,
        action="execute-api:Invoke",
        resource_arn=API,
        region="eu-west-1",
        source_ip="203.0.113.1",
        secure_transport=https,
        service_context={},
    )
    text = str(policy).replace("'", '"').replace("execute-api:/*", API.replace("GET/v1/namespaces", "*"))
    identity = iam_evaluator.EvalResult("Allow" if allowed else "ImplicitDeny")
    return str(iam_evaluator.combine_resource_policy(identity, asked, text, OWN).decision)


@pytest.mark.parametrize(
    ("callers", "account", "decided"),
    [
        ("", OWN, "Allow"),
        ("", LISTED, "ImplicitDeny"),
        (LISTED, OWN, "Allow"),
        (LISTED, LISTED, "Allow"),
        (LISTED, STRANGE, "ImplicitDeny"),
        (f"{LISTED},{STRANGE}", STRANGE, "Allow"),
    ],
)
def test_o5_callers_of_other_accounts_need_the_resource_policy(
    template: dict[str, Any], callers: str, account: str, decided: str
) -> None:
    assert decision(policy_of(template, callers), account) == decided


def test_o5_the_policy_alone_allows_nobody(template: dict[str, Any]) -> None:
    policy = policy_of(template, LISTED)
    assert [decision(policy, account, allowed=False) for account in (OWN, LISTED)] == ["ImplicitDeny"] * 2


@pytest.mark.parametrize("callers", ["", LISTED])
def test_o5_the_definition_always_has_a_policy(template: dict[str, Any], callers: str) -> None:
    policy = policy_of(template, callers)
    assert policy["Version"] == "2012-10-17"
    assert policy["Statement"][-1]["Effect"] == "Deny"
    assert decision(policy, OWN, https=False) == "Deny"


def test_o5_a_change_of_the_accounts_deploys_the_api(template: dict[str, Any]) -> None:
    """Without a deployment, API Gateway goes on with the former policy."""
    deployments = {callers: {name for name, each in translate(template, callers)["Resources"].items()
                             if each["Type"] == "AWS::ApiGateway::Deployment"}
                   for callers in ("", LISTED, f"{LISTED},{STRANGE}")}  # fmt: skip
    assert len(set().union(*deployments.values())) == 3


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        (LISTED, True),
        (f"{LISTED},{STRANGE}", True),
        ("21098765432", False),
        ("2109-8765-4321", False),
        (f"{LISTED}, {STRANGE}", False),
        ("*", False),
        (f"arn:aws:iam::{LISTED}:root", False),
    ],
)
def test_o5_the_parameter_takes_ids_of_accounts(template: dict[str, Any], text: str, fits: bool) -> None:
    assert bool(re.fullmatch(template["Parameters"]["CallerAccounts"]["AllowedPattern"], text)) is fits
