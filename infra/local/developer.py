"""The keys of the local cloud: the root key, with which its servers call each other, and that of an IAM user for its
users. Both are random in each checkout, so that programs without access to its files cannot call."""

import secrets
from typing import Any

from botocore.exceptions import ClientError

from infra.local.endpoints import Key
from infra.local.layout import Layout

USER = "sluice-developer"
_ALL = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'


def root_key(layout: Layout) -> Key | None:
    """The root key, or None before the first start and after a `reset`."""
    remembered = layout.remembered("root")
    return Key(**remembered) if remembered else None


def make_root_key(layout: Layout) -> Key:
    """The root key, made at the first start. `AKIA` is how keys of users begin in AWS."""
    if known := root_key(layout):
        return known
    made = Key(f"AKIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(32))
    layout.remember("root", {"access_key": made.access_key, "secret_key": made.secret_key})
    return made


def keys(layout: Layout, iam: Any) -> Key:
    """The key of the local user, made by the first call and after a `reset`."""
    remembered = layout.remembered("developer") or {}
    try:
        iam.get_user(UserName=USER)
    except ClientError:
        iam.create_user(UserName=USER)
    known = {k["AccessKeyId"] for k in iam.list_access_keys(UserName=USER)["AccessKeyMetadata"]}
    if remembered.get("access_key") in known:
        return Key(**remembered)
    iam.put_user_policy(UserName=USER, PolicyName="everything", PolicyDocument=_ALL)
    made = iam.create_access_key(UserName=USER)["AccessKey"]
    key = Key(made["AccessKeyId"], made["SecretAccessKey"])
    layout.remember("developer", {"access_key": key.access_key, "secret_key": key.secret_key})
    return key
