"""Writes the table of `docs/internals/permissions.md` from the roles of the template:

python -m tests.support.permission_page
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.local.permissions import Policy
from tests.support import roles

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "permissions.md"
BEGIN, END = "| Lambda | resource | actions |\n|---|---|---|\n", "\n<!-- end of the table -->"
# The resources of a stack, by the names that the tests use, in words.
WORDS = (
    (r"^:?:?/?applications/00app", "EMR application"),
    (r"^:?:?/?applications/00listed", "listed EMR applications"),
    (r"role/job$", "job role"),
    (r"^key/0000$", "`KmsKeyArn`, if given"),
    (r"^key/.*", "keys of targets"),
    (r"role/listed$", "listed roles"),
    (rf"^{roles.LAKE}", "LakeBucket"),
    (rf"^{roles.CONTROL}", "ControlBucket"),
    (rf"^{roles.WATCHED}", "watched buckets"),
    (r"/stream/2026.*", "/stream"),
    (r"^table/(\w+Table)", r"\1"),
)


def rows(policies: Mapping[str, Policy]) -> Iterator[str]:
    """A row for each resource of each Lambda, without logs and traces, which all Lambdas write alike."""
    for name, policy in sorted(policies.items()):
        found: dict[str, list[str]] = {}
        for grant in policy.grants():
            service, _, action = grant.action.partition(":")
            if service in ("logs", "xray"):
                continue
            resource = _named(grant.resource, service)
            condition = _condition(grant.conditions)
            reported = f"{resource} ({condition})" if condition else resource
            found.setdefault(reported, []).append(f"{service}:{action}")
        for resource, actions in sorted(found.items()):
            yield f"| `{name}` | {resource} | {', '.join(sorted(set(actions)))} |"


def _named(arn: str, service: str) -> str:
    resource = arn.split(":", 5)[-1]
    for pattern, word in WORDS:
        resource = re.sub(pattern, word, resource)
    return {"*": "all", "catalog": "Glue catalog"}.get(resource, f"Glue {resource}" if service == "glue" else resource)


def _condition(conditions: Mapping[str, Mapping[str, Any]]) -> str:
    """The condition that a reader has to know: which part of a bucket, and which services use the key."""
    prefix = conditions.get("StringLike", {}).get("s3:prefix")
    services = next((each["kms:ViaService"] for each in conditions.values() if "kms:ViaService" in each), ())
    if prefix:
        return f"`s3:prefix` {prefix}"
    services = [services] if isinstance(services, str) else services
    return f"through {', '.join(each.partition('.')[0] for each in services)}" if services else ""


def reported(policies: Mapping[str, Policy]) -> str:
    return BEGIN + "\n".join(rows(policies)) + END


def main() -> None:
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    PAGE.write_text(before + reported(roles.policies()) + after)


if __name__ == "__main__":
    main()
