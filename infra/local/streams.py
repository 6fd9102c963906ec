"""Streams of tables, read in a thread of their own, in batches that wait for a pause.

ministack reads streams and queues in one thread, and waits there for the Lambda that gets the records of a stream. So
the messages of all queues wait, too. It ignores `MaximumBatchingWindowInSeconds`: the Lambda runs all the time while
rows change, and takes the CPU of the Lambdas that change them. In AWS a batch waits for its window, 300 s for the
stream of the runs. Here it waits until no record has come for `PAUSE_S`, at most for `WINDOW_S` after the first record.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

_LOG = logging.getLogger("sluice.local")
PAUSE_S = 1.0
WINDOW_S = 10.0
_EVERY_S = 0.2


class Reader:
    """Reads the streams when their window has passed.

    ``poll`` reads them once and returns whether a Lambda took records. ``came`` counts the records that ever came.
    ``will_retry`` says whether a Lambda failed, so that its records are read again.
    """

    def __init__(
        self,
        poll: Callable[[], bool],
        came: Callable[[], int],
        will_retry: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._poll, self._came, self._will_retry, self._clock = poll, came, will_retry, clock
        self._known = 0
        self._first_at: float | None = None  # of the records that wait
        self._last_at = 0.0

    def look(self) -> bool:
        """Read the streams if a window has passed. Returns whether a Lambda took records: there may be more."""
        now, came = self._clock(), self._came()
        if came != self._known:
            self._known, self._last_at = came, now
            self._first_at = now if self._first_at is None else self._first_at
        if self._first_at is None or (now - self._last_at < PAUSE_S and now - self._first_at < WINDOW_S):
            return False
        is_read = self._poll()
        if not is_read and not self._will_retry():
            self._first_at = None
        return is_read


def install(lambda_svc: Any, dynamodb: Any) -> None:
    """Take the streams out of the thread that reads the queues."""

    def came() -> int:
        kept, dropped = dynamodb._stream_records._data, dynamodb._stream_trimmed._data
        return sum(map(len, list(kept.values()))) + sum(map(int, list(dropped.values())))

    def will_retry() -> bool:
        return any(until > time.time() for until in list(lambda_svc._esm_backoff_until.values()))

    reader = Reader(lambda_svc._poll_dynamodb_streams, came, will_retry)
    lambda_svc._poll_dynamodb_streams = lambda: False
    threading.Thread(target=_read, args=(reader,), name="read-streams", daemon=True).start()


def _read(reader: Reader) -> None:
    while True:
        try:
            more = reader.look()
        except Exception:  # the next look reads the same records again
            _LOG.exception("streams not read")
            more = False
        if not more:
            time.sleep(_EVERY_S)
