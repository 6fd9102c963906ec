"""Athena as a target: a query, followed to its end (W22).

Placeholders stand in the parameters alone. Athena reads each parameter as one literal, so no value of an event can
change the query. https://docs.aws.amazon.com/athena/latest/ug/querying-with-prepared-statements.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from chalicelib.core.access.allowed import Named, own_arn
from chalicelib.core.documents import ONE_LINE, Duration, spanning
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE, parse_instant
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import templates
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.bills import Prices, Usage
from chalicelib.core.targets.target import Log, NoLog, PollInterval, Target

# https://docs.aws.amazon.com/athena/latest/APIReference/API_QueryExecutionStatus.html. A query that waits is QUEUED;
# after an error that may pass it is QUEUED again.
STATES: Mapping[str, RunState] = {
    "RUNNING": "RUNNING",
    "SUCCEEDED": "SUCCEEDED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
}
# Athena takes 262,144 bytes. A run keeps its query in a row of at most 400 KB, beside its properties.
MAX_QUERY = 100_000  # bytes
# Characters of a literal. https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
MAX_PARAMETER = 1_024
OWN_CATALOG = "AwsDataCatalog"  # the one that every account has
# $5 for a TB, which has 1,024 GB of 1,024 MB, and at least 10 MB of each query. DDL and failed queries are free,
# cancelled ones are not. https://aws.amazon.com/athena/pricing/, us-east-1, 2025.
PRICES = Prices(scanned_gb=5 / 1_024)
MIB, LEAST_MB = 1_048_576, 10
# What may precede a statement. The groups are atomic, so a long text of comments takes no longer than its length.
_BEFORE = r"(?>\s+|--[^\n]*|/\*(?>.*?\*/))*+"
# Statements that Athena reads without a comment. The adapter for Athena of dbt leaves it out there, too.
_WITHOUT_COMMENT = re.compile(rf"{_BEFORE}(alter|drop|msck|optimize|vacuum)\b", re.IGNORECASE | re.DOTALL)
# Texts, names in quotes and comments: a ? in them is no parameter.
_NOT_READ = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
# A prepared statement has its parameters in Athena.
_PREPARED = re.compile(rf"{_BEFORE}execute\b", re.IGNORECASE | re.DOTALL)


def _check_scalar(value: object) -> object:
    if not isinstance(value, str | bool | int | float):
        raise invalid("", SCALAR, value)
    return value


SCALAR = "a text, a number, true or false"
Parameter = Annotated[str | bool | int | float, BeforeValidator(_check_scalar)]
S3_FOLDER = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^\s*?{}\[\]\\]*$"


class AthenaTarget(Target):
    """A query of Athena. A ``?`` in the ``query`` stands for one of the ``parameters``, in order.

    Athena reports the states of a run by events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """

    listed: ClassVar[bool] = True
    needs_role: ClassVar[bool] = True
    prices: ClassVar[Prices | None] = PRICES
    event_source: ClassVar[str | None] = "aws.athena"

    type: Literal["athena"]
    query: str = Field(min_length=1)
    parameters: tuple[Parameter, ...] = Field(default=(), max_length=100)
    workgroup: str = Field(default="primary", pattern=r"^[a-zA-Z0-9._-]{1,128}$")
    database: Annotated[str, Field(min_length=1, max_length=255), ONE_LINE] | None = None
    catalog: Annotated[str, Field(pattern=r"^[A-Za-z0-9_@/.-]{1,256}$")] | None = None
    output: Annotated[str, Field(pattern=S3_FOLDER, max_length=1024)] | None = None
    result_reuse: (
        Annotated[
            Duration, spanning(MINUTE, 7 * DAY, "an age from 1m to 7d", "leave it out: each run scans the data anew")
        ]
        | None
    ) = None
    poll_every: PollInterval | None = None

    @field_validator("query")
    @classmethod
    def _is_fixed(cls, query: str) -> str:
        if len(query.encode()) > MAX_QUERY:
            raise invalid("", f"a query of at most {MAX_QUERY:,} bytes", query, "make a view of a part of it")
        if "{{" in query:
            hint = "write ? instead, and the placeholder into parameters: a value within SQL could change the query"
            raise invalid("", "a query without placeholders", query[query.index("{{") :], hint)
        return query

    @model_validator(mode="after")
    def _has_its_parameters(self) -> Self:
        templates.check(self.parameters, "parameters")
        for number, value in enumerate(self.parameters):
            if not isinstance(value, str) or "{{" not in value:
                literal(value, f"parameters.{number}")
        marks = _NOT_READ.sub("", self.query).count("?")
        if marks != len(self.parameters) and not _PREPARED.match(self.query):
            hint = "Athena fills each ? outside of quotes with the next of the parameters"
            raise invalid("parameters", f"as many parameters as the query has ? ({marks})", len(self.parameters), hint)
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        workgroup, catalog, output = str(stored["workgroup"]), stored.get("catalog"), stored.get("output")
        yield Named("engines", own_arn("athena", f"workgroup/{workgroup}"), "workgroup", workgroup)
        if catalog and catalog != OWN_CATALOG:
            yield Named("engines", own_arn("athena", f"datacatalog/{catalog}"), "catalog", str(catalog))
        if output:
            yield Named("buckets", str(output), "output")

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """A state change of a query. It has neither the query, nor the reason of a failure, nor what was scanned.

        https://docs.aws.amazon.com/athena/latest/ug/athena-events.html
        """
        detail, at = event["detail"], parse_instant(event["time"])
        target_id, given = str(detail["queryExecutionId"]), str(detail["currentState"])
        state = STATES.get(given)
        update = RunUpdate(state, at, target_id=target_id) if state is not None else None
        return StateChange("athena", target_id, given, update)

    @classmethod
    def log_of(cls, run: Run) -> Log:
        if run.target_id is None:
            return NoLog("it has no query execution yet", "it never began there")
        shows = f"aws athena get-query-execution --query-execution-id {run.target_id}"
        return NoLog(f"Athena keeps no log of a query; this shows the query with its statistics: {shows}")


def parameters_of(target: Mapping[str, Any], context: Mapping[str, Any]) -> list[str]:
    """The parameters of a run, as Athena reads them. Raises ``invalid`` for a value that the context lacks, or that is
    no literal."""
    filled = templates.fill(target["parameters"], context, "parameters")
    return [literal(value, f"parameters.{number}") for number, value in enumerate(filled)]


def literal(value: Any, field: str) -> str:
    """A value as a literal of SQL. Raises ``invalid`` for any other value, and for one that is too long.

    "For SQL execution parameters to be treated as strings, they must be enclosed in single quotes":
    https://docs.aws.amazon.com/athena/latest/ug/querying-with-prepared-statements.html
    """
    match value:
        case str():
            text = "'" + value.replace("'", "''") + "'"
        case bool() | int() | float() if isfinite(value):
            text = json.dumps(value)
        case _:
            raise invalid(field, SCALAR, value, "name a part of it, such as {{correlation.day}}")
    if len(text) > MAX_PARAMETER:
        raise invalid(field, f"a value of at most {MAX_PARAMETER:,} characters as a literal", f"{len(text):,}")
    return text


def has_mark(query: str) -> bool:
    """Whether the query of a run ends with its `mark`, by which Sluice finds it after a lost answer."""
    return not _WITHOUT_COMMENT.match(query)


def mark(run: Run) -> str:
    """The comment that ends the query of an attempt."""
    return f"-- sluice {run.run_id}-{run.attempt}"


def text_of(run: Run) -> str:
    """The query of an attempt as Athena gets it: without a final semicolon, which no comment may follow."""
    query = str(run.request.target["query"])
    return f"{query.rstrip().removesuffix(';').rstrip()}\n{mark(run)}" if has_mark(query) else query


def usage_of(state: RunState, is_dml: bool, scanned: int) -> Usage:
    """What Athena bills for a query that has scanned so many bytes."""
    if state == "FAILED" or not (scanned or (is_dml and state == "SUCCEEDED")):
        return Usage()
    return Usage(scanned_gb=max(-(-scanned // MIB), LEAST_MB) / 1_024)
