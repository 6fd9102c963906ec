"""Checks that the KMS key of a deployment can encrypt its stack, before anything is changed."""

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from infra import key_policy
from infra.place import Place
from infra.stack import DeployError

_FORBIDDEN = ("AccessDeniedException", "AccessDenied")
_NOTHING_CHANGED = "Nothing was changed."


def check(session: Any, place: Place, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Raise `DeployError` for a key that cannot be used, and for a stack that would lose its key.

    ``wanted`` are all parameters after the deployment, ``present`` those of the stack now. What the caller may not read
    is not checked; then CloudFormation reports the problem, and takes back what it has changed. Roles keep the right to
    use the key, which they get in a deployment of its own, so what was written under it meanwhile stays readable."""
    key, before = wanted.get("KmsKeyArn", ""), present.get("KmsKeyArn", "")
    if before and key != before:
        raise DeployError(
            f"KmsKeyArn: expected {before}, the present key, got {key or 'none'}. The Lambdas could no longer read "
            f"what it encrypts. Keep the parameter; to change the key material, let KMS rotate the key, which keeps "
            f"its ARN. {_NOTHING_CHANGED}"
        )
    if not key:
        return
    region, account = key.split(":")[3:5]
    if region != place.region:
        raise DeployError(
            f"KmsKeyArn: expected a key of the region of the stack, {place.region}, got one of {region}. "
            f"Create a key there, or a replica of a key for several regions. {_NOTHING_CHANGED}"
        )
    if account != place.account:
        raise DeployError(
            f"KmsKeyArn: expected a key of the account of the stack, {place.account}, got one of {account}. "
            f"Create a key there. {_NOTHING_CHANGED}"
        )
    kms = session.client("kms")
    try:
        _check_state(kms, key)
        policy = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    except ClientError as error:
        if error.response["Error"]["Code"] in _FORBIDDEN:
            return
        raise
    lacking = key_policy.missing(policy, place, wanted.get("ApiAccessLog") == "true")
    if lacking:
        raise DeployError(
            f"KmsKeyArn: expected a key whose policy allows {', '.join(lacking)}. Add the statements that "
            f"`python -m infra.key_policy {place.stack.removeprefix('sluice-')}` prints to the policy of {key}. "
            f"{_NOTHING_CHANGED}"
        )


def _check_state(kms: Any, key: str) -> None:
    try:
        found = kms.describe_key(KeyId=key)["KeyMetadata"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        raise DeployError(f"KmsKeyArn: expected a key that exists, got {key}. {_NOTHING_CHANGED}") from None
    state, use = found["KeyState"], found.get("KeySpec", "SYMMETRIC_DEFAULT")
    if use != "SYMMETRIC_DEFAULT" or found.get("KeyUsage", "ENCRYPT_DECRYPT") != "ENCRYPT_DECRYPT":
        raise DeployError(
            f"KmsKeyArn: expected a symmetric key that encrypts (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT), got {key}, which "
            f"is {use}, {found.get('KeyUsage')}. Create such a key. {_NOTHING_CHANGED}"
        )
    if state != "Enabled":
        cure = "cancel-key-deletion" if state == "PendingDeletion" else "enable-key"
        raise DeployError(
            f"KmsKeyArn: expected an enabled key, got {key} in the state {state}. Use another one, or run "
            f"aws kms {cure} --key-id {key}. {_NOTHING_CHANGED}"
        )
