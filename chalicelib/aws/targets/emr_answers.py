"""The meaning of a StartJobRun error: refused for now, unknown answer, or refused for good (`core/runs/launch`).

Some errors pass by themselves: an application that is being created or stopped, or a role that IAM has not propagated
yet. They count as refused for now during ten minutes. EMR reports them with an error that can also be permanent, so
after ten minutes they count as permanent. A denial of another action than to pass a role is permanent at once.
"""

from __future__ import annotations

import re

from botocore.exceptions import ClientError

from chalicelib.aws.targets.aws_errors import code_of, is_no_answer, message_of
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import launch
from chalicelib.core.targets import denials
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow

# https://docs.aws.amazon.com/emr-serverless/latest/APIReference/CommonErrors.html
NOT_NOW = {"ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException", "RequestLimitExceeded"}
EXPIRED = {"ExpiredToken", "ExpiredTokenException"}  # AWS has carried out nothing
NO_ANSWER = {"InternalServerException", "InternalFailure", "ServiceUnavailable", "RequestTimeout"}
_STATE = re.compile(r"\bapplication\b.*\b(state|status|statuses)\b", re.IGNORECASE | re.DOTALL)
_GONE = re.compile(r"\bTERMINATED\b")
_ROLE = re.compile(r"(?<!-)\brole\b", re.IGNORECASE)  # not the `assumed-role` in the ARN of a caller
_OF_ANOTHER_ACCOUNT = re.compile(r"cross-account", re.IGNORECASE)


def of_refusal(error: ClientError, run: Run) -> Answer:
    """The answer to the start call of a run that failed with this error."""
    code, message = code_of(error), message_of(error)
    if code in NOT_NOW:
        return NotNow(f"EMR Serverless refused for now: {code}")
    if code in EXPIRED:
        return NotNow(f"the credentials of the call had expired: {code}", alone=True)
    if is_no_answer(error, NO_ANSWER):
        return NoAnswer(f"StartJobRun gave no answer: {code}")
    details = denials.with_remedy(code, message)
    if not launch.may_pass(run):
        return Never(f"EMR Serverless refused the start: {details}")
    if code == "ConflictException" or (code == "ValidationException" and _is_between_states(message)):
        return NotNow(f"EMR Serverless accepts no runs at the moment: {details}")
    if code in ("AccessDeniedException", "ValidationException") and _role_may_show_later(message):
        # Other runs of the application have other roles, so they are not delayed.
        return NotNow(f"EMR Serverless cannot use the role (not visible yet, or not permitted): {details}", alone=True)
    return Never(f"EMR Serverless refused the start: {details}")


def _is_between_states(message: str) -> bool:
    return _STATE.search(message) is not None and _GONE.search(message) is None


def _role_may_show_later(message: str) -> bool:
    denial = denials.read(message)
    if denial is not None:
        return denial.may_pass
    return _ROLE.search(message) is not None and _OF_ANOTHER_ACCOUNT.search(message) is None
