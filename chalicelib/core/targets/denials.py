"""What IAM denied, read from the message of a service, and what to grant.

Most services write denials in one form, ``User: <arn> is not authorized to perform: <action> on resource: <arn>``. The
reason follows: ``because no <kind> policy allows the <action> action`` or ``with an explicit deny in a <kind>
policy``. Some leave out the resource or the reason.
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DENIED = re.compile(
    r"(?:(?P<user>arn:\S+) is )?not authorized to perform: (?P<action>[a-z0-9-]+:\w+)"
    r"(?: on (?:this )?resource(?:: \"?(?P<resource>[^\s\"]+)\"?)?)?(?P<why>[^(]*)"
)
_MISSING = re.compile(r"because no (?P<kind>.+?)(?: policy)? allows the ")
_EXPLICIT = re.compile(r"with an explicit deny(?: in (?:an?|the) (?P<kind>[\w -]+?)(?: policy)?(?=[.:]|\s*$))?")
_ROLE = re.compile(r":assumed-role/([^/\s]+)/|:role/(?:\S*/)?([^/\s]+)$")
_KMS = re.compile("KMS.?AccessDenied|Access to KMS is not allowed", re.IGNORECASE)
# A new role, and a change of who may pass or assume one, takes a while until each service sees it.
_VISIBLE_LATER = ("iam:PassRole", "sts:AssumeRole")
# The parameter of the stack that grants an action to the Lambdas, by the action or its service.
_PARAMETERS = {
    "emr-serverless": "EmrApplicationIds",
    "events": "TargetBusArns",
    "iam:PassRole": "EmrRoleArns",
    "lambda": "TargetFunctionArns",
    "secretsmanager": "TargetSecretArns",
    "sns": "TargetTopicArns",
    "sqs": "TargetQueueArns",
    "ssm": "TargetParameterArns",
    "states": "TargetStateMachineArns",
}
# A message of an encrypted queue or topic needs both: KMS checks one after the other, and names the first alone.
_OF_KEYS = "kms:GenerateDataKey and kms:Decrypt"
_GET_KEYS = "a role of Sluice's stack gets it by the parameter TargetKeyArns, and the policy of the key must allow it"


@dataclass(frozen=True, slots=True)
class Denial:
    """A denied action. ``policy`` is the kind of policy that decided, as AWS names it (``identity-based``); empty if
    the message does not say. ``explicit``: a statement denies the action, so that no grant elsewhere allows it."""

    action: str
    resource: str
    user: str
    policy: str
    explicit: bool

    @property
    def may_pass(self) -> bool:
        """Whether waiting may mend it: a role or policy that is new, and that services do not see yet."""
        of_iam = self.policy in ("", "identity-based", "role trust")
        return self.action in _VISIBLE_LATER and of_iam and not self.explicit

    @property
    def remedy(self) -> str:
        """What to change so that the action is allowed."""
        action = _OF_KEYS if self.action in _OF_KEYS.split(" and ") else self.action
        what = f"{action} on {self.resource}" if self.resource else action
        if self.explicit:
            return f"change {self.place} so that no statement denies {what}; no grant elsewhere allows it"
        return f"allow {what} in {self.place}{self._by_parameter}"

    @property
    def place(self) -> str:
        """The policy that decided, in words."""
        role = _ROLE.search(self.user)
        caller = f"the role {role[1] or role[2]}" if role else "the caller"
        of_resource = "the policy of the key" if self.action.startswith("kms:") else "the policy of the resource"
        return {
            "": f"the policies of {caller}",
            "identity-based": f"the policies of {caller}",
            "permissions boundary": f"the permissions boundary of {caller}",
            "resource-based": of_resource,
            "role trust": "the trust policy of the role",
            "service control": "the service control policies of the organization",
            "resource control": "the resource control policies of the organization",
            "VPC endpoint": "the policy of the VPC endpoint",
        }.get(self.policy, f"the {self.policy} policy")

    @property
    def _by_parameter(self) -> str:
        if self.policy not in ("", "identity-based"):
            return ""
        service = self.action.partition(":")[0]
        if service == "kms":
            return f"; {_GET_KEYS}"
        parameter = _PARAMETERS.get(self.action, _PARAMETERS.get(service))
        return f"; a role of Sluice's stack gets it by the parameter {parameter}" if parameter else ""


def read(message: str) -> Denial | None:
    """The denial in a message; None if it has none in AWS's form."""
    found = _DENIED.search(message)
    if found is None:
        return None
    explicit = _EXPLICIT.search(found["why"])
    because = explicit or _MISSING.search(found["why"])
    policy = because["kind"] if because else None
    resource = (found["resource"] or "").rstrip(".,;")
    return Denial(found["action"], resource, found["user"] or "", policy or "", explicit is not None)


def with_remedy(code: str, message: str) -> str:
    """An error of AWS in words. A denial says what to do."""
    return f"{code}: {message}{what_to_do(code, message)}"


def what_to_do(code: str, message: str) -> str:
    """What to add to an error that is a denial; empty for any other."""
    denial = read(message)
    if denial is not None:
        return f"; what to do: {denial.remedy}"
    if _KMS.search(f"{code} {message}"):  # services do not always pass on what KMS denied
        return f"; what to do: allow {_OF_KEYS} on the key of the target; {_GET_KEYS}"
    return ""
