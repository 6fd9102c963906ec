"""Athena on the local cloud: queries as AWS runs them, on ministack's DuckDB.

ministack ignores the token and the parameters of a start, runs a query at once, writes its rows below the address that
it reports, forgets that a query was stopped, lists the oldest queries first, and sends no events. Here a start with the
token of another returns that query, a query is QUEUED and then RUNNING, each state is an event on the default bus, and
a request that AWS would refuse is refused.

https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
https://docs.aws.amazon.com/athena/latest/ug/athena-events.html
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
import re
import time
from collections.abc import Callable
from typing import Any

from infra.local import service_model

_LOG = logging.getLogger("sluice.local")
PAUSE = 0.3  # seconds in each state before the end, long enough for a poll to see it
LEAST_SCANNED = 1  # bytes of a query that has read data
_TOKEN, _ASKED = "_token", "_asked"  # of an execution; what begins with an underscore is not shown
# Texts, names in quotes and comments, in which a ? is no parameter.
_PARTS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\?", re.DOTALL)
OPEN = ("QUEUED", "RUNNING")


class Athena:
    """Replaces some functions of ministack's service. ``put_events`` sends the events of AWS's own services, and
    ``pause`` is how many seconds a query is in each state before its end."""

    def __init__(self, service: Any, s3: Any, put_events: Callable[[dict[str, Any]], Any], pause: float) -> None:
        self._service, self._s3, self._put_events, self._pause = service, s3, put_events, pause
        self._begin, self._stop_plainly = service._start_query_execution, service._stop_query_execution
        service._start_query_execution, service._execute_query = self.start, self.execute
        service._list_query_executions, service._stop_query_execution = self.listed, self.stop

    def start(self, data: dict[str, Any]) -> Any:
        if problems := service_model.problems("athena", "StartQueryExecution", data):
            return self._refused("; ".join(problems))
        if data.get("WorkGroup", "primary") not in self._service._workgroups:
            return self._refused(f"WorkGroup {data['WorkGroup']} is not found.")
        token = data.get("ClientRequestToken")
        for known in self._service._executions.values():
            if token is not None and known.get(_TOKEN) == token:
                if known[_ASKED] != data:
                    return self._refused("Idempotent parameters do not match")
                return self._service.json_response({"QueryExecutionId": known["QueryExecutionId"]})
        answer = self._begin(data)
        made = json.loads(answer[2]).get("QueryExecutionId")
        if made is not None:
            self._service._executions[made] |= {_TOKEN: token, _ASKED: data}
        return answer

    async def execute(self, query_id: str, query: str, database: str, ddl: Any, catalog: str | None = None) -> None:
        """Run a query, unless it is stopped before, and write its rows to the address that it reports."""
        execution = self._service._executions[query_id]
        self._tell(execution, "", "QUEUED")
        await asyncio.sleep(self._pause)
        if not self._moves(execution, "RUNNING"):
            return
        began = time.monotonic()
        await asyncio.sleep(self._pause)
        try:
            text = _filled(query, execution[_ASKED].get("ExecutionParameters", ()))
            if ddl is not None:
                found = self._service._run_ddl(ddl, database)
            else:
                found = await self._service._run_duckdb(text, database, catalog)
            if execution["Status"]["State"] not in OPEN:
                return
            self._keep(execution, found)
        except Exception as error:  # the error of DuckDB or S3 is the reason of the query
            _LOG.info("query %s failed: %s", query_id, error)
            execution["Status"]["StateChangeReason"] = str(error)[:2_000]
            execution["Status"]["AthenaError"] = {"ErrorCategory": 2, "ErrorType": 1_006, "Retryable": False}
            self._moves(execution, "FAILED")
            return
        elapsed = round((time.monotonic() - began) * 1_000)
        execution["Statistics"] |= {"EngineExecutionTimeInMillis": elapsed, "TotalExecutionTimeInMillis": elapsed}
        self._moves(execution, "SUCCEEDED")

    def stop(self, data: dict[str, Any]) -> Any:
        execution = self._service._executions.get(data.get("QueryExecutionId"))
        if execution is None:
            return self._refused(f"QueryExecution {data.get('QueryExecutionId')} was not found")
        before = execution["Status"]["State"]
        answer = self._stop_plainly(data)
        if before in OPEN:
            self._tell(execution, before, "CANCELLED")
        return answer

    def listed(self, data: dict[str, Any]) -> Any:
        """The newest first."""
        workgroup, begin = data.get("WorkGroup", "primary"), int(data.get("NextToken") or 0)
        end = begin + int(data.get("MaxResults") or 50)
        ids = [each for each, made in self._service._executions.items() if made["WorkGroup"] == workgroup][::-1]
        more = {"NextToken": str(end)} if end < len(ids) else {}
        return self._service.json_response({"QueryExecutionIds": ids[begin:end], **more})

    def workgroup_of(self, body: bytes) -> str | None:
        """The ARN of the workgroup of a request that names queries alone, by which AWS authorizes it; None for any
        other."""
        asked = json.loads(body or b"{}")
        ids = asked.get("QueryExecutionIds") or [asked.get("QueryExecutionId")]
        made = self._service._executions.get(ids[0])
        return str(self._service._arn_workgroup(made["WorkGroup"])) if made is not None else None

    def _keep(self, execution: dict[str, Any], found: dict[str, Any]) -> None:
        columns, rows = found["columns"], found["rows"]
        execution["_results"] = {"columns": columns, "rows": rows}
        execution["_column_types"] = found.get("column_types", ["varchar"] * len(columns))
        execution["Statistics"]["DataScannedInBytes"] = sum(len(str(row)) for row in rows) + LEAST_SCANNED
        text = io.StringIO()
        csv.writer(text).writerows([columns, *rows])
        bucket, _, key = execution["ResultConfiguration"]["OutputLocation"].removeprefix("s3://").partition("/")
        content = text.getvalue().encode()
        headers = {"content-type": "text/csv", "content-length": str(len(content))}
        answer = self._s3._put_object(bucket, key, content, headers)
        if answer[0] >= 300:
            raise RuntimeError(f"the rows could not be written to s3://{bucket}/{key}")

    def _moves(self, execution: dict[str, Any], state: str) -> bool:
        """Move a query that has not ended to a state. Returns whether it had not."""
        status, before = execution["Status"], execution["Status"]["State"]
        if before not in OPEN:
            return False
        status["State"] = state
        if state not in OPEN:
            status["CompletionDateTime"] = time.time()
        self._tell(execution, before, state)
        return True

    def _tell(self, execution: dict[str, Any], before: str, state: str) -> None:
        detail = {
            "versionId": "0",
            "currentState": state,
            **({"previousState": before} if before else {}),
            "statementType": execution["StatementType"],
            "queryExecutionId": execution["QueryExecutionId"],
            "workgroupName": execution["WorkGroup"],
            "sequenceNumber": "1",
        }
        entry = {"Source": "aws.athena", "DetailType": "Athena Query State Change", "Detail": json.dumps(detail)}
        self._put_events({"Entries": [entry]})

    def _refused(self, why: str) -> Any:
        return self._service.error_response_json("InvalidRequestException", why, 400)


def _filled(query: str, parameters: Any) -> str:
    """The query with its parameters, each a literal, in the places of the question marks."""
    left = list(parameters)

    def part(found: re.Match[str]) -> str:
        if found[0] != "?":
            return found[0]
        if not left:
            raise ValueError("Incorrect number of parameters: too few")
        return str(left.pop(0))

    filled = _PARTS.sub(part, query)
    if left:
        raise ValueError("Incorrect number of parameters: too many")
    return filled


def install(service: Any, s3: Any, eventbridge: Any, iam_actions: Any, pause: float = PAUSE) -> None:
    """Make ministack's Athena behave as AWS's does."""
    made = Athena(service, s3, lambda entries: eventbridge._put_events(entries, allow_aws_source=True), pause)
    resource_of = iam_actions.extract_resource_arn

    def extract_resource_arn(name: str, method: str, path: str, headers: Any, body: bytes, *more: Any) -> str:
        found = made.workgroup_of(body) if name == "athena" else None
        return found or str(resource_of(name, method, path, headers, body, *more))

    iam_actions.extract_resource_arn = extract_resource_arn
