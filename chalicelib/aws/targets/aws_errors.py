"""The meaning of an AWS error for a call: refused for now, unknown answer, or refused for good."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core.targets import denials
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow

R = TypeVar("R")

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
_NO_ANSWER = ("InternalError", "InternalFailure", "ServiceUnavailable", "RequestTimeout", "ServiceException")
# The request can never succeed. An error that is in none of these lists may pass; it counts as refused for now.
_NEVER = (
    *("AccessDenied", "AuthorizationError", "InvalidParameter", "InvalidMessageContents", "InvalidAddress"),
    *("InvalidAttribute", "NonExistentQueue", "QueueDoesNotExist", "NotFound", "ResourceNotFound"),
    *("EndpointDisabled", "InvalidRequestContent", "RequestTooLarge", "BatchRequestTooLong", "UnsupportedOperation"),
    *("MalformedDetail", "InvalidArgument", "NotAuthorizedForSource", "NotAuthorizedForDetailType", "ManagedRule"),
    *("KMSDisabled", "KMSNotFound", "KMSAccessDenied", "KmsAccessDenied", "KmsDisabled", "KmsNotFound"),
)


def refusal(service: str, error: ClientError) -> Answer:
    """The answer for an exception of a client."""
    return answer_of(service, code_of(error), message_of(error), _status(error))


def answer_of(service: str, code: str, message: str, status: int = 0) -> Answer:
    """The answer for an error code, as the entries of a batch have one. Only the code and the status decide."""
    short = code.rpartition(".")[2].removesuffix("Exception")
    if short.startswith(_NO_ANSWER) or status >= 500:
        return NoAnswer(f"{service} gave no answer: {code}")
    if short.startswith(_NEVER):
        return Never(f"{service} refused the message: {denials.with_remedy(code, message)}")
    return NotNow(f"{service} refused for now: {code}: {message}")


def code_of(error: ClientError) -> str:
    return str(error.response["Error"].get("Code", ""))


def message_of(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))


def is_no_answer(error: ClientError, codes: Collection[str]) -> bool:
    """Whether the result of a call is unknown: after one of these codes, or an error of the server."""
    return code_of(error) in codes or _status(error) >= 500


def twice(pause: Callable[[], None], no_answer: Collection[str], call: Callable[..., R], **arguments: Any) -> R:
    """Make an idempotent call; repeat it once, after a pause, if there was no answer."""
    try:
        return call(**arguments)
    except BotoCoreError:
        pass
    except ClientError as error:
        if not is_no_answer(error, no_answer):
            raise
    pause()
    return call(**arguments)


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
