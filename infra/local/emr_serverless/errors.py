"""Errors of the emulated API, as values that the wire module converts to AWS's error answers."""

from __future__ import annotations


class ApiError(Exception):
    """An error answer: AWS's error code, its HTTP status, and a message for the caller."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.message = message


def validation(message: str) -> ApiError:
    """An error for a request that is malformed, or not allowed in the present state."""
    return ApiError("ValidationException", 400, message)


def not_found(kind: str, identifier: str) -> ApiError:
    return ApiError("ResourceNotFoundException", 404, f"{kind} {identifier} does not exist")


def token_conflict(kind: str, token: str, identifier: str) -> ApiError:
    """An error for a client token that was used before with other parameters."""
    message = (
        f"clientToken {token} already made {kind} {identifier} with other parameters: send those, or another token"
    )
    return ApiError("ConflictException", 409, message)


def access_denied(message: str) -> ApiError:
    return ApiError("AccessDeniedException", 403, message)


def unknown_key() -> ApiError:
    message = "The security token included in the request is invalid: expected a key of this local cloud"
    return ApiError("UnrecognizedClientException", 403, message)


def throttled(operation: str, rate: float, burst: int) -> ApiError:
    return ApiError(
        "ThrottlingException",
        429,
        f"Rate exceeded: {operation} allows {rate:g} per second with a burst of {burst}; back off and try again",
    )


def refused(operation: str) -> ApiError:
    return ApiError("ThrottlingException", 429, f"Rate exceeded: {operation} is throttled by `infra.local.throttle`")
