"""The IAM user whose keys the local cloud gives to its users.

ministack does not verify its root key `test`, but verifies the signature of every other key, so callers must not be
root: for this user a wrong secret is refused, as in production. The servers themselves keep using root."""

from typing import Any

from botocore.exceptions import ClientError

from infra.local.layout import Layout

USER = "sluice-developer"
_ALL = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'


def keys(layout: Layout, iam: Any) -> tuple[str, str]:
    """Access key and secret of the local user, created by the first call and after a `reset`."""
    remembered = layout.remembered("developer") or {}
    try:
        iam.get_user(UserName=USER)
    except ClientError:
        iam.create_user(UserName=USER)
    known = {k["AccessKeyId"] for k in iam.list_access_keys(UserName=USER)["AccessKeyMetadata"]}
    if remembered.get("access_key") in known:
        return remembered["access_key"], remembered["secret_key"]
    iam.put_user_policy(UserName=USER, PolicyName="everything", PolicyDocument=_ALL)
    made = iam.create_access_key(UserName=USER)["AccessKey"]
    layout.remember("developer", {"access_key": made["AccessKeyId"], "secret_key": made["SecretAccessKey"]})
    return made["AccessKeyId"], made["SecretAccessKey"]
