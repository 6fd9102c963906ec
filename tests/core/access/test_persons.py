"""Who is one person, where one person must not do what another has to do (C16)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chalicelib.core.access.principal import person_of
from chalicelib.settings import Settings

STS, IAM = "arn:aws:sts::123456789012:assumed-role/", "arn:aws:iam::123456789012:"
SSO = ("arn:aws:iam::123456789012:role/AWSReservedSSO_*",)
PARAMETERS = Path(__file__).parents[3] / "infra/resources/parameters.yaml"
REQUIRED = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "HINTS_QUEUE_URL", "LAKE_BUCKET", "CONTROL_BUCKET")


@pytest.mark.parametrize(
    ("arn", "personal", "person"),
    [
        (f"{STS}data/ada", (), f"{IAM}role/data"),
        (f"{STS}data/bob", (), f"{IAM}role/data"),
        (f"{STS}data/ada", SSO, f"{IAM}role/data"),
        (f"{IAM}user/team/ada", SSO, f"{IAM}user/team/ada"),
        (f"{STS}AWSReservedSSO_Data_0123456789abcdef/ada@example.com", SSO, "session ada@example.com"),
        (f"{STS}AWSReservedSSO_Lead_fedcba9876543210/Ada@Example.com", SSO, "session ada@example.com"),
        ("arn:aws:sts::999999999999:assumed-role/AWSReservedSSO_Data_0/ada", SSO,
         "arn:aws:iam::999999999999:role/AWSReservedSSO_Data_0"),
        (f"{IAM}root", SSO, f"{IAM}root"),
    ],
)  # fmt: skip
def test_c16_a_person_is_a_user_a_role_or_a_listed_session(arn: str, personal: tuple[str, ...], person: str) -> None:
    assert person_of(arn, personal) == person


def read(text: str) -> tuple[str, ...]:
    return Settings.from_environment(dict.fromkeys((f"SLUICE_{name}" for name in REQUIRED), "x") | {
        "SLUICE_PERSONAL_ROLES": text
    }).personal_roles  # fmt: skip


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("", True),
        (SSO[0], True),
        (f"{IAM}role/a,{IAM}role/b-*", True),
        (f"{IAM}role/*", False),
        ("arn:aws:iam::*:role/a", False),
        (f"{IAM}user/ada", False),
        (f"{IAM}role/path/a", False),
        ("*", False),
    ],
)
def test_c16_a_pattern_of_personal_roles_names_account_and_role(text: str, valid: bool) -> None:
    [pattern] = re.findall(r"  PersonalRoles:\n(?:    .*\n)*?    AllowedPattern: '(.*)'\n", PARAMETERS.read_text())
    assert bool(re.fullmatch(pattern, text)) == valid
    if valid:
        assert read(text) == tuple(filter(None, text.split(",")))
    else:
        with pytest.raises(RuntimeError, match="expected ARNs of IAM roles in SLUICE_PERSONAL_ROLES"):
            read(text)
