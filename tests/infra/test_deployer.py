"""The rights that a deployment needs: a row for each type of resource, and a policy."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import cfnlint
import pytest

from infra import deployer
from tests.infra.test_callers import translate


def test_each_type_of_resource_of_the_template_has_its_rights(template: dict[str, Any]) -> None:
    """The types after the transform AWS::Serverless: those that CloudFormation creates."""
    types = {each["Type"].removeprefix("AWS::") for each in translate(template, "")["Resources"].values()}
    assert deployer.rights().keys() - deployer.OWN.keys() == types


def test_each_type_may_be_read_as_its_schema_says() -> None:
    """cfn-lint has the schemas of AWS. Rights on a key are apart: only a key of your own needs them."""
    schemas = Path(cfnlint.__file__).parent / "data" / "schemas"
    files = json.loads((schemas / "providers" / "us-east-1.json").read_text())
    granted = {action for actions in deployer.rights().values() for action in actions}
    for kind in deployer.rights().keys() - deployer.OWN.keys():
        schema = json.loads((schemas / "resources" / f"{files[f'AWS::{kind}']}.json").read_text())
        read = schema.get("handlers", {}).get("read", {"permissions": []})["permissions"]
        assert {action for action in read if not action.startswith("kms:")} <= granted, kind


@pytest.mark.parametrize("kind", ["EMRServerless::Application", "DynamoDB::Table"])
def test_a_first_application_needs_a_service_linked_role(kind: str) -> None:
    assert "iam:CreateServiceLinkedRole" in deployer.rights()[kind]


def test_the_page_lists_the_rights() -> None:
    """Written by `python -m infra.deployer --table`."""
    assert deployer.table() in deployer.PAGE.read_text()


def test_the_policy_has_all_rights_and_fits_iam(capsys: pytest.CaptureFixture[str]) -> None:
    assert deployer.main([]) == 0
    policy = json.loads(capsys.readouterr().out)
    granted = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert granted == {action for actions in deployer.rights().values() for action in actions}
    # A managed policy has at most 6,144 characters, without white space.
    assert len(json.dumps(policy, separators=(",", ":"))) <= 6_144


def test_the_policy_allows_the_transforms_of_the_template(template: dict[str, Any]) -> None:
    """CreateChangeSet is authorized on each of them, besides the stack."""
    [resources] = [each["Resource"] for each in deployer.policy()["Statement"]
                   if "cloudformation:CreateChangeSet" in each["Action"]]  # fmt: skip
    assert any(fnmatchcase("arn:aws:cloudformation:eu-west-1:123456789012:stack/sluice-dev/1", each)
               for each in resources)  # fmt: skip
    for transform in template["Transform"]:
        arn = f"arn:aws:cloudformation:eu-west-1:aws:transform/{transform.removeprefix('AWS::')}"
        assert any(fnmatchcase(arn, each) for each in resources), transform


def test_each_action_is_of_the_form_of_iam() -> None:
    for what, actions in deployer.rights().items():
        assert len(set(actions)) == len(actions), what
        assert all(action.count(":") == 1 and " " not in action for action in actions), what
