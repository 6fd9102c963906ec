"""The operations on job runs, independent of their wire format: checks, guarantees and answers."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from . import errors, records, resources, spark_parameters, states
from .applications import Applications
from .ledger import Ledger
from .records import Application, JobRun
from .scheduler import Scheduler
from .store import Page
from .throttle import Throttle

_PAGE_LIMIT = 50
_MIN_TIMEOUT_MINUTES = 5
_MAX_ATTEMPTS = 10


class JobRuns:
    """Parameters are those of the AWS API, with its names; refusals are raised as `errors.ApiError`."""

    def __init__(
        self, ledger: Ledger, applications: Applications, scheduler: Scheduler, throttle: Throttle, account: str
    ) -> None:
        self._lock = ledger.lock
        self._store = ledger.store
        self._applications = applications
        self._scheduler = scheduler
        self._throttle = throttle
        self._account = account

    def start(self, application_id: str, parameters: Mapping[str, Any]) -> JobRun:
        """Start a run. Idempotent by `clientToken` forever: a repeat returns the first run, however it ended."""
        self._throttle.admit("StartJobRun", application_id)
        request = records.plain(parameters)
        with self._lock:
            application = self._applications.get(application_id)
            token = parameters["clientToken"]
            stored = self._store.run_of_token(application_id, token)
            if stored is None:
                self._check_start(application, request)
                stored = self._store.add_run(self._new_run(application, token, request))
                if application.state != "STARTED":
                    self._applications.save(replace(application, state="STARTED"))
                self._scheduler.submit(stored)
            elif stored.fingerprint != records.fingerprint(request):
                raise errors.token_conflict("job run", token, stored.id)
            return stored

    def get(self, application_id: str, run_id: str, attempt: int | None = None) -> JobRun:
        """The run as of `attempt`, by default its latest."""
        self._throttle.admit("GetJobRun", application_id)
        run = self._run(application_id, run_id)
        if attempt is None:
            return run
        found = run.as_of(attempt)
        if found is None:
            raise errors.not_found(f"Attempt {attempt} of job run", run_id)
        return found

    def attempts(self, application_id: str, run_id: str) -> list[JobRun]:
        """The run as of each attempt, newest first."""
        run = self._run(application_id, run_id)
        found = (run.as_of(number) for number in range(run.attempt, 0, -1))
        return [one for one in found if one is not None]

    def page(self, application_id: str, parameters: Mapping[str, Any]) -> Page:
        self._throttle.admit("ListJobRuns", application_id)
        self._applications.get(application_id)
        after, before = parameters.get("createdAtAfter"), parameters.get("createdAtBefore")
        # Clients send whole seconds, so the listing includes the second of `before`.
        created = (_epoch(after) if after else 0.0, _epoch(before) + 1 if before else float("inf"))
        limit = int(parameters.get("maxResults") or _PAGE_LIMIT)
        if not 1 <= limit <= _PAGE_LIMIT:
            raise errors.validation(f"maxResults: expected 1 to {_PAGE_LIMIT}, got {limit}")
        token = parameters.get("nextToken")
        cursor = _read_cursor(token) if token else None
        return self._store.page(application_id, parameters.get("states") or (), created, limit, cursor)

    def cancel(self, application_id: str, run_id: str, grace_s: float | None) -> None:
        self._throttle.admit("CancelJobRun", application_id)
        with self._lock:
            run = self._run(application_id, run_id)
            if run.state in states.TERMINAL:
                raise errors.validation(f"Job run {run_id} is not in a cancellable state: it is {run.state}")
            self._scheduler.cancel(run_id, grace_s)

    def _run(self, application_id: str, run_id: str) -> JobRun:
        self._applications.get(application_id)
        run = self._store.run(run_id)
        if run is None or run.application_id != application_id:
            raise errors.not_found("JobRun", run_id)
        return run

    def _check_start(self, application: Application, request: Mapping[str, Any]) -> None:
        if application.state == "TERMINATED":
            raise errors.validation(f"Application {application.id} is terminated. Cannot start job run.")
        automatic = (application.request.get("autoStartConfiguration") or {}).get("enabled", True)
        if application.state != "STARTED" and not automatic:
            raise errors.validation(
                f"Application {application.id} is {application.state} and does not start by itself: start it first."
            )
        role = str(request.get("executionRoleArn", ""))
        if role.split(":")[4:5] != [self._account]:
            raise errors.access_denied(
                f"Cross-account pass role is not allowed: expected a role of account {self._account}, got {role}"
            )
        if not ((request.get("jobDriver") or {}).get("sparkSubmit") or {}).get("entryPoint"):
            raise errors.validation("jobDriver: expected sparkSubmit with an entryPoint; the emulator runs Spark only")
        minutes = request.get("executionTimeoutMinutes") or 0
        if 0 < minutes < _MIN_TIMEOUT_MINUTES:
            raise errors.validation("RunTimeout must be at least 5 minutes.")

    def _new_run(self, application: Application, token: str, request: Mapping[str, Any]) -> JobRun:
        now, run_id = time.time(), records.new_id()
        run = JobRun(
            id=run_id,
            application_id=application.id,
            arn=f"{application.arn}/jobruns/{run_id}",
            name=request.get("name"),
            release_label=application.release_label,
            execution_role=request["executionRoleArn"],
            created_by=f"arn:aws:iam::{self._account}:root",
            client_token=token,
            fingerprint=records.fingerprint(request),
            request=request,
            state=states.SUBMITTED,
            state_details="",
            created_at=now,
            updated_at=now,
            attempt_created_at=now,
        )
        if not 1 <= run.max_attempts <= 10:
            raise errors.validation(f"retryPolicy.maxAttempts: expected 1 to 10, got {run.max_attempts}")
        try:
            resources.need(spark_parameters.of_run(run).properties)
        except ValueError as error:
            raise errors.validation(str(error)) from error
        return run


def _epoch(value: datetime | float) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)


def write_cursor(cursor: tuple[str, int]) -> str:
    """The opaque `nextToken` of a page."""
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode()


def _read_cursor(token: str) -> tuple[str, int]:
    try:
        state, seq = json.loads(base64.urlsafe_b64decode(token))
        return str(state), int(seq)
    except ValueError:
        raise errors.validation("nextToken: expected that of the previous page, got another text") from None
