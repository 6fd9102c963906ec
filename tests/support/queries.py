"""A client of Athena in memory, with the calls of `aws/targets/athena.py`. It checks each request against AWS's own
rules, and refuses as AWS does.

https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from infra.local import service_model

QUERY = "INSERT INTO daily SELECT * FROM flights WHERE day = ? AND delay > ?"
OUTPUT = "s3://sluice-target-results/daily/"
TARGET = {
    "type": "athena",
    "query": QUERY,
    "parameters": ["{{correlation.day}}", 15],
    "workgroup": "sluice-target-demo",
    "database": "lake",
    "output": OUTPUT,
}
OPEN = ("QUEUED", "RUNNING")
MB = 1_048_576


@dataclass
class Query:
    id: str
    asked: dict[str, Any]
    submitted: int
    state: str = "QUEUED"
    ended: int | None = None
    reason: str = ""
    error: dict[str, Any] = field(default_factory=dict)
    queued: int = 0  # ms
    scanned: int = 0
    kind: str = "DML"
    more: dict[str, Any] = field(default_factory=dict)  # statistics
    shown: bool = True  # by the calls that read
    listed: bool = True  # by ListQueryExecutions

    @property
    def text(self) -> str:
        return str(self.asked["QueryString"])


@dataclass
class Queries:
    """``refusals`` are errors to raise instead of answers, the first one first. ``lose_answers`` is the number of
    starts that succeed without an answer. ``calls`` are the operations that were called."""

    clock: Any
    queries: dict[str, Query] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    lose_answers: int = 0
    calls: list[str] = field(default_factory=list)

    def start_query_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StartQueryExecution", asked)
        token = asked["ClientRequestToken"]
        known = next((each for each in self.queries.values() if each.asked["ClientRequestToken"] == token), None)
        if known is not None and known.asked != asked:
            raise refused("InvalidRequestException", "Idempotent parameters do not match")
        number = len(self.queries) + 1
        made = known or Query(f"00000000-0000-4000-8000-{number:012}", asked, self.clock.now())
        self.queries[made.id] = made
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://athena.example")
        return {"QueryExecutionId": made.id}

    def get_query_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("GetQueryExecution", asked)
        return {"QueryExecution": _shown(self._found(asked["QueryExecutionId"]))}

    def batch_get_query_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("BatchGetQueryExecution", asked)
        ids = asked["QueryExecutionIds"]
        found = [self.queries[each] for each in ids if each in self.queries and self.queries[each].shown]
        known = {each.id for each in found}
        left_out = [{"QueryExecutionId": each, "ErrorCode": "INTERNAL"} for each in ids if each not in known]
        return {"QueryExecutions": [_shown(each) for each in found], "UnprocessedQueryExecutionIds": left_out}

    def list_query_executions(self, **asked: Any) -> dict[str, Any]:
        """The newest first."""
        self._expect_valid("ListQueryExecutions", asked)
        ids = [each.id for each in reversed(self.queries.values())
               if each.listed and each.asked["WorkGroup"] == asked["WorkGroup"]]  # fmt: skip
        begin = int(asked.get("NextToken", 0))
        end = begin + asked["MaxResults"]
        return {"QueryExecutionIds": ids[begin:end], **({"NextToken": str(end)} if end < len(ids) else {})}

    def stop_query_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StopQueryExecution", asked)
        found = self._found(asked["QueryExecutionId"])
        if found.state in OPEN:
            self.end(found, "CANCELLED", "Query cancelled by user")
        return {}

    def end(self, query: Query, state: str, reason: str = "", **changed: Any) -> None:
        query.state, query.reason, query.ended = state, reason, self.clock.now()
        for name, value in changed.items():
            setattr(query, name, value)

    def end_all(self, state: Callable[[Query], str]) -> None:
        """Every query that has not ended ends."""
        for each in self.queries.values():
            if each.state in OPEN:
                self.end(each, state(each))

    def _found(self, target_id: str) -> Query:
        found = self.queries.get(target_id)
        if found is None or not found.shown:
            raise refused("InvalidRequestException", f"QueryExecution {target_id} was not found")
        return found

    def _expect_valid(self, operation: str, asked: dict[str, Any]) -> None:
        self.calls.append(operation)
        problems: Sequence[str] = service_model.problems("athena", operation, asked)
        assert not problems, f"AWS would refuse {operation}: {problems}"
        if self.refusals:
            raise self.refusals.pop(0)


def _shown(query: Query) -> dict[str, Any]:
    """https://docs.aws.amazon.com/athena/latest/APIReference/API_QueryExecution.html"""
    status: dict[str, Any] = {"State": query.state, "SubmissionDateTime": _date(query.submitted)}
    status |= {"CompletionDateTime": _date(query.ended)} if query.ended is not None else {}
    status |= {"StateChangeReason": query.reason} if query.reason else {}
    status |= {"AthenaError": query.error} if query.error else {}
    output = query.asked.get("ResultConfiguration", {}).get("OutputLocation", "s3://of-workgroup/")
    return {
        "QueryExecutionId": query.id,
        "Query": query.text,
        "StatementType": query.kind,
        "ResultConfiguration": {"OutputLocation": f"{output}{query.id}.csv"},
        "Status": status,
        "Statistics": {"DataScannedInBytes": query.scanned, "QueryQueueTimeInMillis": query.queued, **query.more},
        "WorkGroup": query.asked["WorkGroup"],
    }


def event_of(query: Query, now: int, before: str = "QUEUED") -> dict[str, Any]:
    """The event of a state change. https://docs.aws.amazon.com/athena/latest/ug/athena-events.html"""
    return {
        "version": "0",
        "id": "abcdef00-1234-5678-9abc-def012345678",
        "detail-type": "Athena Query State Change",
        "source": "aws.athena",
        "account": "123456789012",
        "time": _date(now).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "region": "us-east-1",
        "resources": [],
        "detail": {
            "versionId": "0",
            "currentState": query.state,
            "previousState": before,
            "statementType": query.kind,
            "queryExecutionId": query.id,
            "workgroupName": query.asked["WorkGroup"],
            "sequenceNumber": "3",
        },
    }


def refused(code: str, message: str = "?", status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "call")


def _date(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
