"""Athena as a target: start, poll, find and stop queries.

A repeated start with the same token and the same parameters returns the same query.
https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from chalicelib.aws.targets.aws_errors import code_of, message_of
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.engine import CALL, Engine, instant
from chalicelib.core import results
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, Instant, Millis, duration
from chalicelib.core.rows.run import Run
from chalicelib.core.states import FailureKind
from chalicelib.core.targets.answers import Answer, Never, RunUpdate, SearchLimit, Started
from chalicelib.core.targets.athena import STATES, has_mark, mark, parameters_of, text_of, usage_of
from chalicelib.core.targets.target import first_call
from chalicelib.settings import Settings

LISTED = 50  # queries of a page, and of one question about their states
BETWEEN_PAGES = 0.2  # seconds: a region lists five pages a second
MAX_PAGES_FOUND = 40  # 2,000 queries of a workgroup within a few minutes
CLOCKS: Millis = 2 * MINUTE  # the largest expected difference between Athena's clock and Sluice's
# https://docs.aws.amazon.com/athena/latest/APIReference/API_AthenaError.html
_CATEGORIES = {1: "system", 2: "user", 3: "other"}
_TIMED_OUT = ("Query timeout", "EXCEEDED_TIME_LIMIT")  # the limit of the account, 30 minutes by default


class AthenaTarget(Engine):
    """Queries are asked about by 50. Athena keeps them for 45 days."""

    name, start_call, one = "Athena", "StartQueryExecution", "query execution"
    never: ClassVar = ("AccessDeniedException", "InvalidRequestException", "ResourceNotFoundException")
    no_answer: ClassVar = (*Engine.no_answer, "InternalServerException")
    asked_at_once: ClassVar = LISTED

    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        try:
            request = request_of(run, context)
        except SluiceError as error:
            return Never(f"{error.field}: {error.message}" + (f"; {error.hint}" if error.hint else ""))
        return Started(self._client.start_query_execution(**request)["QueryExecutionId"])

    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        updates = {found["QueryExecutionId"]: update_of(found) for found in self._described(target_ids)}
        left_out = [each for each in target_ids if each not in updates]
        return updates | {each: None for each in left_out if not self._is_missing(each)}

    def find(self, run: Run) -> str | None:
        """The query that ends with the mark of the attempt, among those of its workgroup since the first call.

        Athena lists the newest queries first. Raises `SearchLimit` beyond the pages of a few minutes.
        """
        target = run.request.target
        if not has_mark(target["query"]):
            return None
        since = first_call(run) - CLOCKS
        for page in self._pages(str(target["workgroup"])):
            found = self._described(page)
            for each in found:
                if each["Query"].endswith(mark(run)):
                    return str(each["QueryExecutionId"])
            if found and all(_submitted(each) < since for each in found):
                return None
        return None

    def stop(self, target_id: str, why: str) -> None:
        del why
        try:
            self.twice(self._client.stop_query_execution, QueryExecutionId=target_id)
        except ClientError as error:
            if code_of(error) != "InvalidRequestException":  # of a query that has ended
                raise

    def _pages(self, workgroup: str) -> Iterable[Sequence[str]]:
        """The ids of the queries of a workgroup, page by page; none of one that is deleted, with its queries."""
        asked: dict[str, Any] = {"WorkGroup": workgroup, "MaxResults": LISTED}
        for number in range(MAX_PAGES_FOUND):
            self._pause(BETWEEN_PAGES if number else 0)
            try:
                page = self.twice(self._client.list_query_executions, **asked)
            except ClientError as error:
                if _is_gone(error):
                    return
                raise
            yield page.get("QueryExecutionIds", ())
            if not page.get("NextToken"):
                return
            asked["NextToken"] = page["NextToken"]
        raise SearchLimit(f"expected the query within {MAX_PAGES_FOUND} pages of workgroup {workgroup}, got more")

    def _described(self, target_ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """The queries that Athena describes. It refuses the question if a workgroup is gone."""
        if not target_ids:
            return ()
        try:
            answer = self.twice(self._client.batch_get_query_execution, QueryExecutionIds=list(target_ids))
        except ClientError as error:
            if _is_gone(error):
                return ()
            raise
        found: Sequence[Mapping[str, Any]] = answer.get("QueryExecutions", ())
        return found

    def _is_missing(self, target_id: str) -> bool:
        """Whether Athena knows no such query. A batch leaves out queries for other reasons, too."""
        try:
            self.twice(self._client.get_query_execution, QueryExecutionId=target_id)
        except ClientError as error:
            if _is_gone(error):
                return True
            raise
        return False


def _is_gone(error: ClientError) -> bool:
    """Whether Athena knows no such query, or no such workgroup."""
    return code_of(error) == "InvalidRequestException" and "not found" in message_of(error)


def request_of(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The StartQueryExecution request of a run. Raises `SluiceError` for a parameter that has no value."""
    target = run.request.target
    parameters = parameters_of(target, context)
    within = {"Database": target.get("database"), "Catalog": target.get("catalog")}
    given = {name: value for name, value in within.items() if value}
    output, reuse = target.get("output"), target.get("result_reuse")
    by_age = {"Enabled": True, "MaxAgeInMinutes": duration(reuse, "result_reuse") // MINUTE} if reuse else {}
    return {
        "QueryString": text_of(run),
        "ClientRequestToken": run.request.client_token,
        "WorkGroup": target["workgroup"],
        **({"ExecutionParameters": parameters} if parameters else {}),
        **({"QueryExecutionContext": given} if given else {}),
        **({"ResultConfiguration": {"OutputLocation": output}} if output else {}),
        **({"ResultReuseConfiguration": {"ResultReuseByAgeConfiguration": by_age}} if reuse else {}),
    }


def update_of(found: Mapping[str, Any]) -> RunUpdate | None:
    """The update of a run from its query execution; None while it waits at Athena."""
    status, statistics, target_id = found["Status"], found.get("Statistics") or {}, found["QueryExecutionId"]
    state = STATES.get(status["State"])
    if state is None:
        return None
    began = _submitted(found) + int(statistics.get("QueryQueueTimeInMillis") or 0)
    if state == "RUNNING":
        return RunUpdate(state, began, target_id=target_id)
    ended = instant(status["CompletionDateTime"]) if status.get("CompletionDateTime") else began
    reason, outcome = _reason(status) if state != "SUCCEEDED" else ("", "failed")
    return RunUpdate(
        state,
        ended,
        reason,
        target_id,
        outcome=outcome,
        billed=_billed(found, statistics),
        started_at=min(began, ended),
        result=results.of_value(_result(found, statistics)),
    )


def _reason(status: Mapping[str, Any]) -> tuple[str, FailureKind]:
    """Why a query failed or was stopped, in Athena's words, and the kind of the failure."""
    error = status.get("AthenaError") or {}
    said = str(status.get("StateChangeReason") or error.get("ErrorMessage") or "")
    category = _CATEGORIES.get(error.get("ErrorCategory", 0))
    may_pass = "may succeed if repeated" if error.get("Retryable") else "fails again if repeated"
    outcome: FailureKind = "timed_out" if any(sign in said for sign in _TIMED_OUT) else "failed"
    return (f"{said} ({category} error, {may_pass})" if category else said), outcome


def _billed(found: Mapping[str, Any], statistics: Mapping[str, Any]) -> tuple[int, ...]:
    """What was scanned; nothing if the query used reserved capacity, which is billed by the hour."""
    if statistics.get("DpuCount"):
        return ()
    is_reused = (statistics.get("ResultReuseInformation") or {}).get("ReusedPreviousResult", False)
    is_dml = found.get("StatementType") == "DML" and not is_reused
    scanned = int(statistics.get("DataScannedInBytes") or 0)
    return usage_of(STATES[found["Status"]["State"]], is_dml, scanned).stored()


def _result(found: Mapping[str, Any], statistics: Mapping[str, Any]) -> dict[str, Any]:
    """What the runs after this one need of a query (W18): where its rows are. ``manifest`` lists the files that an
    INSERT, a CTAS or an UNLOAD has written."""
    parts = {
        "query_execution_id": found["QueryExecutionId"],
        "output": (found.get("ResultConfiguration") or {}).get("OutputLocation"),
        "scanned_bytes": statistics.get("DataScannedInBytes"),
        "manifest": statistics.get("DataManifestLocation"),
    }
    return {name: value for name, value in parts.items() if value not in (None, "")}


def _submitted(found: Mapping[str, Any]) -> Instant:
    return instant(found["Status"]["SubmissionDateTime"])


def build(clients: Clients, settings: Settings) -> AthenaTarget:
    del settings
    return AthenaTarget(clients.make("athena", **CALL), clients.now)
