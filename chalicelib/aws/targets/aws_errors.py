"""The meaning of an AWS error for a delivery: refused for now, unknown answer, or refused for good."""

from __future__ import annotations

from botocore.exceptions import ClientError

from chalicelib.core.targets import denials
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
_NO_ANSWER = ("InternalError", "InternalFailure", "ServiceUnavailable", "RequestTimeout", "ServiceException")
# The request can never succeed. An error that is in none of these lists may pass; it counts as refused for now.
_NEVER = (
    *("AccessDenied", "AuthorizationError", "InvalidParameter", "InvalidMessageContents", "InvalidAddress"),
    *(
        "InvalidAttribute",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "NotFound",
        "ResourceNotFound",
        "BatchRequestTooLong",
    ),
    *("EndpointDisabled", "InvalidRequestContent", "RequestTooLarge", "BatchRequestTooLong", "UnsupportedOperation"),
    *(
        "MalformedDetail",
        "InvalidArgument",
        "NotAuthorizedForSource",
        "NotAuthorizedForDetailType",
        "ManagedRule",
        "KMSDisabled",
    ),
    *("KMSDisabled", "KMSNotFound", "KMSAccessDenied", "KmsAccessDenied", "KmsDisabled", "KmsNotFound"),
)


def refusal(service: str, error: ClientError) -> Answer:
    """The answer for an exception of a client."""
    details = error.response["Error"]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return answer_of(service, str(details.get("Code", "")), str(details.get("Message", "")), status)


def answer_of(service: str, code: str, message: str, status: int = 0) -> Answer:
    """The answer for an error code, as the entries of a batch have one. Only the code and the status decide."""
    short = code.rpartition(".")[2].removesuffix("Exception")
    if short.startswith(_NO_ANSWER) or status >= 500:
        return NoAnswer(f"{service} gave no answer: {code}")
    if short.startswith(_NEVER):
        return Never(f"{service} refused the message: {denials.with_remedy(code, message)}")
    return NotNow(f"{service} refused for now: {code}: {message}")
