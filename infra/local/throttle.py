"""Throttled calls on the local cloud, switched on and off while it runs.

    python -m infra.local.throttle "*" --share 0.05                  # one call in twenty, of any kind
    python -m infra.local.throttle "dynamodb:*:*-jobs" --per-second 50 --burst 10
    python -m infra.local.throttle "emr-serverless:StartJobRun:*" --share 0.5
    python -m infra.local.throttle                                   # show the rules
    python -m infra.local.throttle off

A pattern is compared with `service:Operation:resource`; `*` matches anything. The resource is a table, queue, bucket,
topic or application; the operation is that of the API, or the HTTP method for S3 and Lambda. A call to several tables
counts once for each. The error is that of AWS; boto3 retries it as it does there."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from infra.local.layout import Layout
from infra.local.rates import Rate, TokenBucket

Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Rule:
    """The calls that are throttled: a random ``share``, or those beyond a rate."""

    calls: str
    share: float = 0.0
    per_second: float = 0.0
    burst: int = 1


class Switch:
    """The rules in the file, which is read again after each change."""

    def __init__(self, path: Path, chance: Callable[[], float] = random.random) -> None:
        self._path, self._chance = path, chance
        self._read_at: int | None = None
        self._rules: list[tuple[Rule, TokenBucket]] = []

    def has_rules(self) -> bool:
        """Whether any call is throttled."""
        self._look()
        return bool(self._rules)

    def refuses(self, calls: Sequence[str]) -> bool:
        """Whether to refuse a request with these calls, each `service:Operation:resource`."""
        self._look()
        for rule, bucket in self._rules:
            if any(fnmatchcase(call, rule.calls) for call in calls):
                if rule.share and self._chance() < rule.share:
                    return True
                if not bucket.take():
                    return True
        return False

    def _look(self) -> None:
        try:
            changed_at: int | None = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            changed_at = None
        if changed_at == self._read_at:
            return
        self._read_at = changed_at
        rules = read(self._path) if changed_at is not None else []
        self._rules = [(rule, TokenBucket(Rate(rule.per_second, rule.burst))) for rule in rules]


def read(path: Path) -> list[Rule]:
    return [Rule(**rule) for rule in json.loads(path.read_text())] if path.exists() else []


def write(path: Path, rules: Sequence[Rule]) -> None:
    """Write the file atomically, because servers may read it at any moment."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps([asdict(rule) for rule in rules]))
    part.replace(path)


def install(services: Mapping[str, Any], switch: Switch) -> None:
    """Make ministack's services, by their names in AWS, refuse calls according to the rules."""
    for name, service in services.items():
        service.handle_request = _throttled(name, service.handle_request, switch)


def _throttled(service: str, handle: Callable[..., Any], switch: Switch) -> Callable[..., Any]:
    async def handle_request(
        method: str, path: str, headers: dict[str, str], body: bytes, *more: Any, **named: Any
    ) -> Any:
        # Most of the time there is no rule, and reading the body a second time would slow each call down.
        if switch.has_rules() and switch.refuses(calls_of(service, method, path, headers, body)):
            return refusal(service)
        return await handle(method, path, headers, body, *more, **named)

    return handle_request


def calls_of(service: str, method: str, path: str, headers: Mapping[str, str], body: bytes) -> list[str]:
    """The calls of a request: `service:Operation:resource`, once for each of its resources."""
    operation, resources = method, [path.strip("/").partition("/")[0]]
    if target := headers.get("x-amz-target", ""):
        operation = target.rpartition(".")[2]
        resources = _resources(json.loads(body or b"{}"))
    elif service in ("sns", "sqs"):
        form = parse_qs(body.decode("utf-8", errors="replace"))
        operation = form.get("Action", [method])[0]
        resources = [value[0].rpartition(":" if name == "TopicArn" else "/")[2]
                     for name, value in form.items() if name in ("TopicArn", "QueueUrl")]  # fmt: skip
    elif service == "lambda":
        resources = [part for part in (path.partition("/functions/")[2].partition("/")[0],) if part]
    return [f"{service}:{operation}:{resource}" for resource in resources or [""]]


def refusal(service: str) -> Answer:
    """The service's answer to a throttled call."""
    if service == "s3":
        details = "<Code>SlowDown</Code><Message>Please reduce your request rate.</Message>"
        body = f'<?xml version="1.0" encoding="UTF-8"?><Error>{details}</Error>'.encode()
        return 503, {"Content-Type": "application/xml"}, body
    if service == "sns":
        details = "<Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message>"
        body = f"<ErrorResponse><Error>{details}</Error></ErrorResponse>".encode()
        return 400, {"Content-Type": "text/xml"}, body
    code, status = {
        "dynamodb": ("ProvisionedThroughputExceededException", 400),
        "sqs": ("RequestThrottled", 400),
        "lambda": ("TooManyRequestsException", 429),
    }.get(service, ("ThrottlingException", 400))
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": code}
    return status, headers, json.dumps({"__type": code, "message": "Rate exceeded"}).encode()


def _resources(request: Mapping[str, Any]) -> list[str]:
    """The tables of a DynamoDB request, or the queue of an SQS request."""
    found: list[str] = []
    if "TableName" in request:
        found.append(str(request["TableName"]))
    if "QueueUrl" in request:
        found.append(str(request["QueueUrl"]).rpartition("/")[2])
    found += map(str, request.get("RequestItems", {}))
    found += [str(part["TableName"]) for item in request.get("TransactItems", ()) for part in item.values()]
    return list(dict.fromkeys(found))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.local.throttle", description="Throttle the local cloud.")
    parser.add_argument("calls", nargs="?", help='"service:Operation:resource" with *, or "off"')
    parser.add_argument(
        "--share", type=float, default=0.0, help="random share of the calls to refuse: 0.05 is one in twenty"
    )
    parser.add_argument("--per-second", type=float, default=0.0, help="calls per second that pass")
    parser.add_argument("--burst", type=int, default=1, help="calls that pass at once")
    options = parser.parse_args(arguments)
    path = Layout().throttle
    if options.calls == "off":
        path.unlink(missing_ok=True)
    elif options.calls:
        if not 0 <= options.share <= 1 or not (options.share or options.per_second):
            parser.error(f"expected --share from 0 to 1, or --per-second, got --share {options.share:g} alone")
        path.parent.mkdir(parents=True, exist_ok=True)
        rule = Rule(options.calls, options.share, options.per_second, options.burst)
        write(path, [*(known for known in read(path) if known.calls != rule.calls), rule])
    for known in read(path):
        rate = (
            f"{known.per_second:g} a second, burst {known.burst}" if known.per_second else f"{known.share:.0%} refused"
        )
        print(f"{known.calls}: {rate}")
    if not read(path):
        print("nothing is throttled")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
