"""The calls of the local cloud's Lambdas that IAM refused, one per line, so that a test can check that there are none.

ministack refuses a Lambda what its role does not allow, as AWS does; the emulator of EMR Serverless does so too. A flow
may catch the error or retry later, and then only the Lambda's log would show it. Therefore each refusal is also written
to `.local/refusals.jsonl`. Refusals of users and of roles outside the stack are not written: tests provoke those."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The roles of the stack are named by CloudFormation: `<stack>-<logical id>-<letters>`.
OF_STACK = "assumed-role/sluice-local-"


def note(path: Path, caller: str, action: str, resource: str) -> None:
    """Add a line. It is short, so lines of several processes do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"caller": caller, "action": action, "resource": resource}) + "\n")


def read(path: Path, after: int = 0) -> list[dict[str, str]]:
    """The refusals, without the first `after`."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines[after:]]


def install(iam_evaluator: Any, path: Path) -> None:
    """Make ministack record what it refuses the Lambdas of the stack."""
    iam_evaluator.enforce = _noted(iam_evaluator.enforce, path)


def _noted(enforce: Callable[..., Any], path: Path) -> Callable[..., Any]:
    def enforced(access_key_id: str, iam_action: str, service: str, region: str, **named: Any) -> Any:
        refused = enforce(access_key_id, iam_action, service, region, **named)
        caller = getattr(refused, "principal_arn", "")
        if OF_STACK in caller:
            note(path, caller, iam_action, named.get("resource_arn", "*"))
        return refused

    return enforced
