"""An API of the local cloud has the resource policy of its definition: it decides about signers of other accounts."""

from __future__ import annotations

from typing import Any

import pytest
from ministack.core import iam_evaluator
from ministack.services import apigateway_v1

from infra.local import aws

OWN, LISTED, STRANGE = "000000000000", "210987654321", "333333333333"
ALLOWED = {
    "Effect": "Allow",
    "Principal": {"AWS": [LISTED]},
    "Action": "execute-api:Invoke",
    "Resource": "execute-api:/*",
}


def decision(policy: dict[str, Any] | None, account: str) -> str:
    definition: dict[str, Any] = {"swagger": "2.0", "info": {"title": "sluice"}, "paths": {}}
    if policy is not None:
        definition["x-amazon-apigateway-policy"] = policy
    api = aws._with_policy(apigateway_v1._import_rest_api)(definition, {"name": "sluice"})
    arn = f"arn:aws:execute-api:us-east-1:{OWN}:{api}/api/GET/v1/namespaces"
    asked = iam_evaluator.EvalContext(
        principal_arn=f"arn:aws:iam::{account}:user/ann",
        principal_type="User",
        principal_account=account,
        action="execute-api:Invoke",
        resource_arn=arn,
        region="us-east-1",
    )
    found = apigateway_v1.rest_api_policy_for_arn(arn)
    assert found is not None
    apigateway_v1._delete_rest_api(api)
    return str(iam_evaluator.combine_resource_policy(iam_evaluator.EvalResult("Allow"), asked, *found).decision)


@pytest.mark.parametrize(("account", "with_policy"), [(OWN, "Allow"), (LISTED, "Allow"), (STRANGE, "ImplicitDeny")])
def test_a_signer_of_another_account_needs_the_policy_of_the_api(account: str, with_policy: str) -> None:
    assert decision({"Version": "2012-10-17", "Statement": [ALLOWED]}, account) == with_policy
    for nobody in (None, {"Version": "2012-10-17", "Statement": []}):
        assert decision(nobody, account) == ("Allow" if account == OWN else "ImplicitDeny")
