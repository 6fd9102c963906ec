"""What an error of an AWS service means to a delivery: not now, no answer, or never."""

from __future__ import annotations

from botocore.exceptions import ClientError

from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
_NO_ANSWER = ("InternalError", "InternalFailure", "ServiceUnavailable", "RequestTimeout", "ServiceException")
# The request as it is can never succeed. What is in none of these lists may: it counts as a refusal for now.
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
    """The answer that an exception of a client carries."""
    told = error.response["Error"]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return answer_of(service, str(told.get("Code", "")), str(told.get("Message", "")), status)


def answer_of(service: str, code: str, message: str, status: int = 0) -> Answer:
    """The same of an entry of a batch, which is told by its code alone."""
    short = code.rpartition(".")[2].removesuffix("Exception")
    if short.startswith(_NO_ANSWER) or status >= 500:
        return NoAnswer(f"{service} gave no answer: {code}")
    if short.startswith(_NEVER):
        return Never(f"{service} refused the message: {code}: {message}")
    return NotNow(f"{service} refused for now: {code}: {message}")
