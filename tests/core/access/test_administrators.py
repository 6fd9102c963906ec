"""The administrators of an installation, as the stack parameter lists them (O5)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chalicelib.settings import Settings

NAMES = ("catalog_table", "jobs_table", "runs_table", "hints_queue_url", "lake_bucket", "control_bucket")
PARAMETERS = Path(__file__).parents[3] / "infra" / "resources" / "parameters.yaml"


def administrators(text: str) -> tuple[str, ...]:
    variables = {f"SLUICE_{name.upper()}": "x" for name in NAMES} | {"SLUICE_ADMINISTRATORS": text}
    return Settings.from_environment(variables).administrators


def takes(text: str) -> bool:
    """Whether CloudFormation takes a value of the parameter."""
    [pattern] = re.findall(r"  Administrators:\n(?:    .*\n)*?    AllowedPattern: '(.*)'\n", PARAMETERS.read_text())
    return re.fullmatch(pattern, text, re.ASCII) is not None


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "arn:aws:iam::*:role/platform",
        "arn:aws:iam::123456789012:*",
        "arn:aws:iam::123456789012:role/*",
        "arn:aws:iam::123456789012:role/[a-z]*",
        "arn:aws:iam::123456789012:role/?latform",
        "arn:aws:iam::123456789012:role/path/platform",
        "arn:aws:iam::123456789012:role/platform,ops",
        "123456789012",
    ],
)
def test_a_pattern_that_makes_everybody_administrator_is_refused(text: str) -> None:
    with pytest.raises(RuntimeError, match="expected ARNs of IAM users and roles in SLUICE_ADMINISTRATORS"):
        administrators(text)
    assert not takes(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "arn:aws:iam::123456789012:root",
        "arn:aws-us-gov:iam::123456789012:role/platform-*,arn:aws-cn:iam::123456789012:user/team/ann",
        "arn:aws:iam::123456789012:role/AWSReservedSSO_Admin_0123456789abcdef",
        "arn:aws:sts::123456789012:federated-user/ann",
    ],
)
def test_administrators_are_users_and_roles_of_one_account(text: str) -> None:
    assert administrators(text) == tuple(name for name in text.split(",") if name)
    assert takes(text)
