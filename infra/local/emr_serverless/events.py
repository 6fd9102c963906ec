"""State-change events, in the envelope in which EventBridge delivers them to the Lambda of a rule.

Events of `aws.*` sources cannot be put on a bus, so the function is invoked directly and asynchronously. Delivery is
best effort, as AWS documents: one thread delivers in order, failed events are logged and dropped, and no run waits for
delivery."""

from __future__ import annotations

import logging
import queue
import random
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .records import JobRun

log = logging.getLogger(__name__)


class Undelivered(Exception):
    """An event was not delivered."""


Deliver = Callable[[dict[str, Any]], None]

# The maximum of undelivered events. Beyond it the target counts as unreachable, and newer events are dropped.
_BACKLOG = 50_000


def envelope(run: JobRun, previous: str, account: str, region: str) -> dict[str, Any]:
    """The event for the change of `run` from `previous` to its state, at `run.updated_at`.

    Fields and formats are those of the EMR Serverless user guide, "Automating EMR Serverless with EventBridge":
    `resources` is empty, `time` has seconds, the instants in `detail` have microseconds.
    """
    detail = {
        "jobRunId": run.id,
        "jobRunName": run.name,
        "applicationId": run.application_id,
        "arn": run.arn,
        "releaseLabel": run.release_label,
        "state": run.state,
        "previousState": previous,
        "createdBy": run.created_by,
        "updatedAt": _instant(run.updated_at, "microseconds"),
        "createdAt": _instant(run.created_at, "microseconds"),
    }
    if run.name is None:
        del detail["jobRunName"]
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "EMR Serverless Job Run State Change",
        "source": "aws.emr-serverless",
        "account": account,
        "time": _instant(run.updated_at, "seconds"),
        "region": region,
        "resources": [],
        "detail": detail,
    }


class StateChanges:
    """The queue of events to deliver. `deliver` may block or raise Undelivered; the share `drop_share` is dropped."""

    def __init__(self, deliver: Deliver | None, account: str, region: str, drop_share: float = 0.0) -> None:
        self._deliver = deliver
        self._account = account
        self._region = region
        self._drop_share = drop_share
        self._line: queue.Queue[dict[str, Any] | None] = queue.Queue(_BACKLOG)
        self._thread = threading.Thread(target=self._work, name="state-changes", daemon=True)
        if deliver is not None:
            self._thread.start()

    def announce(self, run: JobRun, previous: str) -> None:
        """Queue the event of a change. Never blocks and never raises."""
        if self._deliver is None:
            return
        event = envelope(run, previous, self._account, self._region)
        if random.random() < self._drop_share:
            log.info("event %s of run %s dropped, as --drop-events asks", run.state, run.id)
            return
        try:
            self._line.put_nowait(event)
        except queue.Full:
            log.warning("event %s of run %s dropped: %d wait already", run.state, run.id, _BACKLOG)

    def close(self, wait_s: float = 5.0) -> None:
        """Deliver the queued events, for at most `wait_s` seconds."""
        if self._thread.is_alive():
            self._line.put(None)
            self._thread.join(wait_s)

    def _work(self) -> None:
        assert self._deliver is not None
        while (event := self._line.get()) is not None:
            try:
                self._deliver(event)
            except Undelivered as error:
                detail = event["detail"]
                log.warning("event %s of run %s dropped: %s", detail["state"], detail["jobRunId"], error)


def _instant(epoch: float, precision: str) -> str:
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
