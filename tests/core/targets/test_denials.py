"""What is read from the denials of AWS, in the words in which its services write them, and what to grant."""

from __future__ import annotations

import pytest

from chalicelib.core.targets import denials

CHECK = "arn:aws:sts::123456789012:assumed-role/sluice-prod-CheckRole-1A2B3C/sluice-prod-check"
APPLICATION = "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/00fabc"
ROLE = "arn:aws:iam::123456789012:role/jobs/daily"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:sluice-target-orders"

MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:etl"


def said(action: str, resource: str = "", why: str = "", user: str = CHECK) -> str:
    on = f" on resource: {resource}" if resource else ""
    return f"User: {user} is not authorized to perform: {action}{on}{f' {why}' if why else ''}"


def no(kind: str, action: str) -> str:
    return f"because no {kind} allows the {action} action"


OF_KMS = "(Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException; Request ID: 318a7abf; Proxy: null)"
IN_SCP = "with an explicit deny in a service control policy"
POLICY = "arn:aws:organizations::987654321098:policy/o-qv5af4abcd/service_control_policy/p-2kgnabcd"
OLD_KMS = (
    " on the resource associated with this ciphertext because the resource does not exist in this Region, no "
    "resource-based policies allow access, or a resource-based policy explicitly denies access"
)
START, SEND, PASS, KMS = "emr-serverless:StartJobRun", "sqs:SendMessage", "iam:PassRole", "kms:GenerateDataKey"
TAG = "emr-serverless:TagResource"
# The words of AWS: of its page on denials, and of services in public reports.
TEXTS = {
    "tags": said(TAG, APPLICATION, no("identity-based policy", TAG)),
    "start": said(START, APPLICATION),
    "pass": said(PASS, ROLE, no("identity-based policy", PASS)),
    "pass, short": said(PASS, user="arn:aws:iam::123456789012:user/marymajor"),
    "pass, denied": said(PASS, ROLE, f"{IN_SCP}: {POLICY}"),
    "pass, organization": said(PASS, ROLE, no("service control policy", PASS)),
    "organization": said(SEND, QUEUE, IN_SCP),
    "resources of the organization": said(SEND, QUEUE, "with an explicit deny in a resource control policy"),
    "endpoint": said(SEND, why=no("VPC endpoint policy", SEND)),
    "boundary": said("states:StartExecution", MACHINE, no("permissions boundary", "states:StartExecution")),
    "boundary, denied": said(SEND, why="with an explicit deny in a permissions boundary"),
    "session": said(SEND, QUEUE, no("session policy", SEND)),
    "queue": said(SEND, QUEUE, no("resource-based policy", SEND)),
    "trust": said("sts:AssumeRole", ROLE),
    "key": said(KMS, KEY, f"{no('identity-based policy', KMS)} {OF_KMS}"),
    "key, old": said("kms:Decrypt") + OLD_KMS,
    "key, denied": said(KMS, KEY, "with an explicit deny."),
    "key of another account": said(KMS, KEY, no("resource-based policy", KMS)),
    "object": said("s3:PutObject", '"arn:aws:s3:::lake/a-b"', no("identity-based policy", "s3:PutObject")),
}


@pytest.mark.parametrize(
    ("text", "action", "resource", "policy", "explicit"),
    [
        ("tags", "emr-serverless:TagResource", APPLICATION, "identity-based", False),
        ("start", "emr-serverless:StartJobRun", APPLICATION, "", False),
        ("pass", "iam:PassRole", ROLE, "identity-based", False),
        ("pass, short", "iam:PassRole", "", "", False),
        ("pass, denied", "iam:PassRole", ROLE, "service control", True),
        ("pass, organization", "iam:PassRole", ROLE, "service control", False),
        ("organization", "sqs:SendMessage", QUEUE, "service control", True),
        ("resources of the organization", "sqs:SendMessage", QUEUE, "resource control", True),
        ("endpoint", "sqs:SendMessage", "", "VPC endpoint", False),
        ("boundary, denied", "sqs:SendMessage", "", "permissions boundary", True),
        ("session", "sqs:SendMessage", QUEUE, "session", False),
        ("queue", "sqs:SendMessage", QUEUE, "resource-based", False),
        ("key", "kms:GenerateDataKey", KEY, "identity-based", False),
        ("key, old", "kms:Decrypt", "", "", False),
        ("key, denied", "kms:GenerateDataKey", KEY, "", True),
        ("key of another account", "kms:GenerateDataKey", KEY, "resource-based", False),
        ("object", "s3:PutObject", "arn:aws:s3:::lake/a-b", "identity-based", False),
    ],
)
def test_a_denial_is_read_from_its_text(text: str, action: str, resource: str, policy: str, explicit: bool) -> None:
    denial = denials.read(TEXTS[text])
    assert denial is not None
    assert (denial.action, denial.resource, denial.policy, denial.explicit) == (action, resource, policy, explicit)


def test_only_a_new_role_shows_later() -> None:
    passing = [name for name, text in TEXTS.items() if (found := denials.read(text)) and found.may_pass]
    assert passing == ["pass", "pass, short", "trust"]


OF_CHECK = "the policies of the role sluice-prod-CheckRole-1A2B3C; a role of Sluice's stack gets it by the parameter"
BOTH = f"kms:GenerateDataKey and kms:Decrypt on {KEY}"
IN_ORGANIZATION = "the service control policies of the organization"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("tags", f"allow {TAG} on {APPLICATION} in {OF_CHECK} EmrApplicationIds"),
        ("pass", f"allow {PASS} on {ROLE} in {OF_CHECK} EmrRoleArns"),
        ("pass, organization", f"allow {PASS} on {ROLE} in {IN_ORGANIZATION}"),
        (
            "organization",
            f"change {IN_ORGANIZATION} so that no statement denies {SEND} on {QUEUE}; no grant elsewhere allows it",
        ),
        ("endpoint", f"allow {SEND} in the policy of the VPC endpoint"),
        (
            "boundary",
            f"allow states:StartExecution on {MACHINE} in the permissions boundary of the role "
            "sluice-prod-CheckRole-1A2B3C",
        ),
        ("session", f"allow {SEND} on {QUEUE} in the session policy"),
        ("queue", f"allow {SEND} on {QUEUE} in the policy of the resource"),
        ("key", f"allow {BOTH} in {OF_CHECK} TargetKeyArns, and the policy of the key must allow it"),
        ("key of another account", f"allow {BOTH} in the policy of the key"),
    ],
)
def test_a_denial_says_what_to_grant(text: str, remedy: str) -> None:
    assert denials.with_remedy("AccessDenied", TEXTS[text]) == f"AccessDenied: {TEXTS[text]}; what to do: {remedy}"


NOT_ALLOWED = (
    "The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you"
)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("KMSAccessDenied", f"null {OF_KMS}"),
        ("KMSAccessDeniedException", f"{NOT_ALLOWED} are not allowed to access."),
        ("KMS.AccessDeniedException", "null"),
        ("AccessDeniedException", "Access to KMS is not allowed"),
        ("KmsAccessDenied", "The caller doesn't have the required KMS access."),
    ],
)
def test_a_denial_of_kms_without_words_says_what_to_grant(code: str, message: str) -> None:
    assert denials.read(message) is None
    found = denials.with_remedy(code, message)
    assert found.startswith(f"{code}: {message}; what to do: allow kms:GenerateDataKey and kms:Decrypt on the key of")
    assert "TargetKeyArns" in found


@pytest.mark.parametrize(
    "message", ["", "Access to the resource https://sqs.us-east-1.amazonaws.com/ is denied.", "Rate exceeded"]
)
def test_another_error_is_told_as_it_is(message: str) -> None:
    assert denials.read(message) is None
    assert denials.with_remedy("AccessDenied", message) == f"AccessDenied: {message}"
