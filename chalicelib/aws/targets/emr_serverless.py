"""EMR Serverless as a target: start, poll, find and cancel job runs. `emr_answers.py` interprets start errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets import emr_answers
from chalicelib.aws.targets.aws_errors import code_of, twice
from chalicelib.aws.targets.clients import Clients
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.limits import names
from chalicelib.core.rows.run import Run
from chalicelib.core.states import EMR_STATE, RunState
from chalicelib.core.targets import emr_reason
from chalicelib.core.targets.answers import Answer, NoAnswer, RunUpdate, SearchLimit, Started
from chalicelib.core.targets.bills import Usage
from chalicelib.core.targets.target import first_call, tag_value
from chalicelib.settings import Settings

R = TypeVar("R")

_GOING: tuple[RunState, ...] = ("STARTING", "RUNNING")
UNKNOWN = "the target no longer knows this run"
# The rates of EMR: ListJobRuns 1 a second, GetJobRun 10. One page costs as much as ten polls, and answers up to fifty.
LISTED, WORTH, MAX_PAGES = 50, 10, 20
BETWEEN_PAGES, BETWEEN_QUESTIONS = 1.0, 0.1  # seconds, when many runs are polled
CLOCKS = 2 * MINUTE  # the largest expected difference between EMR's clock and Sluice's
MAX_PAGES_FOUND = 40  # pages of fifty runs: 2,000 runs created within a few minutes
MAX_REFUSALS = 4  # throttled calls of one page: pauses of 1 + 2 + 4 seconds
BETWEEN_ATTEMPTS = 0.2  # seconds, before the repeat of a call without an answer

# A start call answers within a second. After the timeout the next call has the same token.
CALL: dict[str, Any] = {"connect_timeout": 2, "read_timeout": 6, "retries": {"total_max_attempts": 1}}


class EmrServerlessTarget:
    def __init__(
        self,
        client: Any,
        application_id: str,
        role_arn: str,
        control_bucket: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._pause = pause
        self._application_id = application_id
        self._role_arn = role_arn
        self._control_bucket = control_bucket

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        del context  # the job reads it from the control bucket
        answer = self._start(run)
        if not isinstance(answer, NoAnswer) or not _may_repeat(run):
            return answer
        self._pause(BETWEEN_ATTEMPTS)
        again = self._start(run)
        # Only a started run proves the result of the first call; otherwise the first call stays unknown.
        return again if isinstance(again, Started) else answer

    def _start(self, run: Run) -> Answer:
        try:
            answer = self._client.start_job_run(**self.request(run))
        except ClientError as error:
            return emr_answers.of_refusal(error, run)
        except BotoCoreError as error:
            return NoAnswer(f"StartJobRun gave no answer: {error}")
        return Started(f"{answer['applicationId']}/{answer['jobRunId']}")

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """Start runs one by one: StartJobRun has no batch form, and a limit paces the calls."""
        return [self.start(run, context) for run, context in calls]

    def request(self, run: Run) -> dict[str, Any]:
        """The exact StartJobRun request of a run, derived from the stored row alone."""
        target = run.request.target
        limit = {} if run.run_timeout is None else {"executionTimeoutMinutes": _limit(run.run_timeout)}
        logs = {"s3MonitoringConfiguration": {"logUri": f"s3://{self._control_bucket}/logs/{run.request.logs}"}}
        return {
            "applicationId": target["application_id"] or self._application_id,
            "executionRoleArn": target["execution_role_arn"] or self._role_arn,
            "clientToken": run.request.client_token,
            "name": run.request.name,
            "jobDriver": {"sparkSubmit": driver_of(run)},
            "configurationOverrides": {"monitoringConfiguration": logs},
            "tags": {"sluice:schedule": tag_value(run.schedule), "sluice:workflow": tag_value(run.workflow)},
            **limit,
        }

    def status(self, run: Run) -> RunUpdate | None:
        application_id, _, job_run_id = (run.target_id or "").partition("/")
        try:
            found = self._twice(self._client.get_job_run, applicationId=application_id, jobRunId=job_run_id)["jobRun"]
        except self._client.exceptions.ResourceNotFoundException:
            return RunUpdate("FAILED", first_call(run), UNKNOWN, run.target_id, outcome="lost")
        except ClientError as error:
            if code_of(error) in emr_answers.NOT_NOW:
                return None  # throttled: the next check polls this run again
            raise
        return _update(found, run)

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        """Poll runs by ListJobRuns while its pages cost less of EMR's rates than a GetJobRun for each run. Runs that
        the pages do not show are polled one by one. Both stay within the rates that EMR sustains."""
        by_application: dict[str, dict[str, Run]] = {}
        for run in runs:
            application_id, _, job_run_id = (run.target_id or "").partition("/")
            by_application.setdefault(application_id, {})[job_run_id] = run
        listed = {f"{name}/{found['id']}": found for name, own in by_application.items()
                  for found in self._list(name, own)}  # fmt: skip
        return [self._status_from(run, listed.get(str(run.target_id))) for run in runs]

    def _status_from(self, run: Run, listed: Mapping[str, Any] | None) -> RunUpdate | None:
        """The update of one run. A listing has no billed resources, so an ended run is polled by itself. If that poll
        is throttled, the state of the listing is used without them."""
        if listed is not None and EMR_STATE.get(listed["state"]) in _GOING:
            return _update(listed, run)
        self._pause(BETWEEN_QUESTIONS)
        update = self.status(run)
        return _update(listed, run) if update is None and listed is not None else update

    def _list(self, application_id: str, wanted: Mapping[str, Run]) -> list[dict[str, Any]]:
        """Those of the wanted job runs that are on the first pages of the listing, newest first."""
        oldest = min(first_call(run) for run in wanted.values())
        since = datetime.fromtimestamp(oldest / 1000, UTC) - timedelta(days=1)  # wide: pages are few, newest first
        request: dict[str, Any] = {"applicationId": application_id, "createdAtAfter": since, "maxResults": LISTED}
        found: list[dict[str, Any]] = []
        for number in range(min(len(wanted) // WORTH, MAX_PAGES)):
            self._pause(BETWEEN_PAGES if number else 0)
            try:
                page = self._twice(self._client.list_job_runs, **request)
            except ClientError as error:
                if code_of(error) in emr_answers.NOT_NOW:
                    break
                raise
            found += [job_run for job_run in page["jobRuns"] if job_run["id"] in wanted]
            if len(found) == len(wanted) or not page.get("nextToken"):
                break
            request["nextToken"] = page["nextToken"]
        return found

    def find(self, run: Run) -> str | None:
        """The job run that an unanswered start call has started; None if there is none.

        The listing covers the time from the first call to the end of the last call's lease, extended by the clock
        difference. These are a few pages, independent of the number of runs a day. Raises `SearchLimit` beyond them.
        """
        application_id = run.request.target["application_id"] or self._application_id
        first = first_call(run)
        for page in islice(self.pages(application_id, first, run.lease_until), MAX_PAGES_FOUND):
            for found in page["jobRuns"]:
                if found.get("name") == run.request.name:
                    return f"{application_id}/{found['id']}"
            if not page.get("nextToken"):
                return None
        raise SearchLimit(f"expected run {run.request.name} within {MAX_PAGES_FOUND} pages of job runs, got more")

    def pages(self, application_id: str, after: Instant, before: Instant | None = None) -> Iterator[Any]:
        """The pages of job runs that were created between two instants, newest first, at the rate that EMR bears. The
        span is extended by the clock difference."""
        request = {"applicationId": application_id, "maxResults": LISTED, "createdAtAfter": _datetime(after - CLOCKS)}
        if before is not None:
            request["createdAtBefore"] = _datetime(before + CLOCKS)
        while True:
            page = self._page(request)
            yield page
            if not page.get("nextToken"):
                return
            request["nextToken"] = page["nextToken"]
            self._pause(BETWEEN_PAGES)

    def _page(self, request: Mapping[str, Any]) -> Any:
        """A page of the listing. A throttled call is repeated with a doubling pause."""
        for number in range(MAX_REFUSALS - 1):
            try:
                return self._twice(self._client.list_job_runs, **request)
            except ClientError as error:
                if code_of(error) not in emr_answers.NOT_NOW:
                    raise
            self._pause(BETWEEN_PAGES * 2**number)
        return self._twice(self._client.list_job_runs, **request)

    def cancel(self, run: Run) -> None:
        application_id, _, job_run_id = (run.target_id or "").partition("/")
        try:
            self._twice(self._client.cancel_job_run, applicationId=application_id, jobRunId=job_run_id)
        except (self._client.exceptions.ResourceNotFoundException, self._client.exceptions.ValidationException):
            return  # it has ended already; the next poll returns its end

    def _twice(self, call: Callable[..., R], **arguments: Any) -> R:
        return twice(lambda: self._pause(BETWEEN_ATTEMPTS), emr_answers.NO_ANSWER, call, **arguments)

    def run_name(self, target_id: str) -> str | None:
        application_id, _, job_run_id = target_id.partition("/")
        try:
            found = self._twice(self._client.get_job_run, applicationId=application_id, jobRunId=job_run_id)["jobRun"]
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return str(found.get("name") or "") or None


def driver_of(run: Run) -> dict[str, Any]:
    """The program of a run, as EMR Serverless and EMR on EKS take it."""
    target = run.request.target
    driver: dict[str, Any] = {
        "entryPoint": target["entry_point"],
        "entryPointArguments": [*target["arguments"], "--sluice-context", run.request.context_uri],
    }
    parameters = [f"--py-files {','.join(target['py_files'])}"] if target["py_files"] else []
    parameters += [f"--conf {name}={value}" for name, value in sorted(target["spark"].items())]
    if parameters:
        driver["sparkSubmitParameters"] = " ".join(parameters)
    return driver


def _may_repeat(run: Run) -> bool:
    """Whether a start call may be repeated at once. The permit of a policy is for one instant, which has passed by
    then. The pace of the application tolerates one more call."""
    return all(names.is_target_pace(limit) or not names.is_pace(limit) for limit in run.permits)


def _update(found: Mapping[str, Any], run: Run) -> RunUpdate | None:
    """The update of a run from a job run or its entry in a listing; None while the job run has not started."""
    state = EMR_STATE.get(found["state"], "STARTING")
    if state == "STARTING":
        return None
    reason = emr_reason.of_details(str(found.get("stateDetails") or "")) if state in ("FAILED", "CANCELLED") else ""
    began, ended = _instant(found.get("startedAt")), _instant(found.get("endedAt"))
    reported = began if state == "RUNNING" else ended  # a listing has neither
    at = reported if reported is not None else round(found["updatedAt"].timestamp() * 1000)
    billed = _billed(found.get("billedResourceUtilization"))
    return RunUpdate(state, at, reason, run.target_id, billed=billed, started_at=None if state == "RUNNING" else began)


def _datetime(instant: Instant) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)


def _instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _limit(timeout: Millis) -> int:
    """EMR's own timeout in minutes (default 12 h; 0 for none): slightly longer than Sluice's, which reports the
    reason."""
    return -(-timeout // MINUTE) + 5 if timeout else 0


def _billed(hours: Mapping[str, float] | None) -> tuple[int, ...]:
    """https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_ResourceUtilization.html"""
    if hours is None:
        return ()
    return Usage(hours.get("vCPUHour", 0), hours.get("memoryGBHour", 0), hours.get("storageGBHour", 0)).stored()


def build(clients: Clients, settings: Settings) -> EmrServerlessTarget:
    # The adapter repeats an unanswered call, and the flow repeats it later; the token makes all of them one run.
    emr = clients.make("emr-serverless", **CALL)
    return EmrServerlessTarget(emr, settings.emr_application_id, settings.emr_job_role_arn, settings.control_bucket)
