"""Retries of table calls, for a few seconds: after throttling, a transaction conflict, or a lost answer.

botocore's own retries are off for the tables (`wiring.py`). botocore would repeat a write after a lost answer without
notice, and the condition of the repeat would fail because of the first write. `Tries.unanswered` remembers this case.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from chalicelib.core.errors import SluiceError

T = TypeVar("T")

# The errors that are caught around a table call; `Tries.again` re-raises those that a repeat cannot resolve.
FAILURES = (ClientError, ConnectionError, HTTPClientError, ResponseParserError)
# Another write was in progress on the same row.
CONFLICTS = {"TransactionConflict", "TransactionConflictException"}
# The table or the account is over its throughput at the moment.
THROTTLES = {
    "ThrottlingError",
    "ThrottlingException",
    "Throttling",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
}
# The call failed and changed nothing.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
REFUSED_FOR_NOW = CONFLICTS | THROTTLES
# The call may have been carried out, or may still be in progress.
UNKNOWN = {
    "InternalServerError",
    "InternalFailure",
    "ServiceUnavailable",
    "RequestTimeout",
    "RequestTimeoutException",
    "TransactionInProgressException",
}
FIRST_PAUSE, MAX_PAUSE = 0.01, 1.0  # seconds: conflicts on a hot row are over within milliseconds


@dataclass(frozen=True, slots=True)
class Patience:
    """For how many seconds a call is retried, with the clock, the sleep and the random numbers that this uses.
    ``throttled`` is called for each throttled call."""

    seconds: float = 8.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[float, float], float] = random.uniform
    throttled: Callable[[], None] = lambda: None


class Tries:
    """The tries of one call. ``unanswered``: at least one try may have been carried out without an answer."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._ends_at = patience.now() + patience.seconds
        self._failed = 0
        self.unanswered = False

    def again(self, error: Exception) -> None:
        """Record the failure of one try, and wait before the next. Raises the error if a repeat cannot resolve it, and
        ``unavailable`` when the time is used up."""
        if is_unanswered(error):
            self.unanswered = True
        elif not (isinstance(error, ClientError) and is_refused_for_now(error)):
            raise error
        self.pause(error)

    def pause(self, cause: Exception | None = None) -> None:
        """Wait before the next try: full jitter, 10 ms doubling to 1 s, so that competing callers do not collide again.
        Raises ``unavailable`` when the time is used up."""
        patience = self._patience
        if cause is None or is_throttled(cause):  # a batch that was processed in part returns no error
            patience.throttled()
        wait = patience.draw(0, min(FIRST_PAUSE * 2.0 ** min(self._failed, 10), MAX_PAUSE))
        if patience.now() + wait >= self._ends_at:
            seconds = f"{patience.seconds:g} seconds"
            message = (
                f"the tables gave no answer for {seconds}" if self.unanswered else f"the tables were busy for {seconds}"
            )
            raise SluiceError("unavailable", message, None, "retry the request in a few seconds") from cause
        self._failed += 1
        patience.sleep(wait)


def tried(patience: Patience, call: Callable[..., T], **arguments: Any) -> T:
    """The answer of a call that may be repeated unchanged: a read, a batch, or a write without a condition."""
    tries = Tries(patience)
    while True:
        try:
            return call(**arguments)
        except FAILURES as error:
            tries.again(error)


def is_unanswered(error: Exception) -> bool:
    """Whether a call with this error may have been carried out."""
    if not isinstance(error, ClientError):
        return True
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return (code_of(error) in UNKNOWN or status >= 500) and code_of(error) not in REFUSED_FOR_NOW


def is_refused_for_now(error: ClientError) -> bool:
    """Whether a call failed without any change, and may succeed in a moment."""
    if code_of(error) in REFUSED_FOR_NOW:
        return True
    return any(reason.get("Code") in REFUSED_FOR_NOW for reason in reasons_of(error))


def is_down(error: BaseException) -> bool:
    """Whether a call of any AWS service failed only because the service is throttling or does not answer."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_down, error.exceptions))
    if isinstance(error, SluiceError):
        return error.code == "unavailable"
    if isinstance(error, ClientError):
        return is_unanswered(error) or is_refused_for_now(error)
    return isinstance(error, FAILURES)


def is_throttled(error: Exception) -> bool:
    """Whether a call was throttled."""
    if not isinstance(error, ClientError):
        return False
    return code_of(error) in THROTTLES or any(reason.get("Code") in THROTTLES for reason in reasons_of(error))


def code_of(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def reasons_of(error: ClientError) -> list[Mapping[str, Any]]:
    """The cancellation reasons of a transaction, write by write; empty for any other error."""
    if code_of(error) != "TransactionCanceledException":
        return []
    return list(error.response.get("CancellationReasons", []))
