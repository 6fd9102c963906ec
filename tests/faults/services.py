"""The services of AWS that Sluice uses, as they behave in an outage: refused calls, late or repeated messages, lost
events. The times of an outage and its seed determine everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.aws.failures import delay_s
from chalicelib.aws.tables import items
from chalicelib.core.history.lines import Change, Part
from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.targets.answers import Answer, NoAnswer, NotNow, RunUpdate
from chalicelib.core.targets.bills import Prices
from chalicelib.flow.history.export import land
from chalicelib.ports import StoredObject
from infra.yaml_tags import load
from sluice.testing.memory import MemoryLake, MemoryPayloads
from sluice.testing.memory_tables import MemoryTables
from tests.faults.day import DayEmr, DayQueue

SERVICES = ("dynamodb", "sqs", "s3", "emr", "eventbridge", "lambda", "stream")
# A queue or a bus is either up or down, and so is a stream. These services can throttle.
THROTTLED = ("dynamodb", "s3", "emr", "lambda")
SHARE = 0.7  # of the calls of a throttled service that are refused
SDK_TRIES = 3  # botocore's standard mode
INVOKED = 5  # tries, while it is throttled, to invoke a Lambda for the same messages or the same minute
MAX_DELAY: Millis = 15 * MINUTE  # of a message in SQS
STREAM_KEEPS = 24 * HOUR
RESOURCES = Path(__file__).parents[2] / "infra" / "resources"


@dataclass(frozen=True)
class Outage:
    """A service is ``unavailable`` or ``throttled`` from one minute of the load to another."""

    service: str
    how: str
    since: int
    until: int


class Services:
    """The services that are down at this moment. Every call of a fake checks here first."""

    def __init__(self, clock: Any, outages: Sequence[Outage], seed: int) -> None:
        self._clock, self._outages = clock, outages
        self._chance = random.Random(seed)
        self.begin: Instant | None = None

    def how(self, service: str) -> str:
        if self.begin is None:
            return ""
        minute = (self._clock.now() - self.begin) / MINUTE
        return next((each.how for each in self._outages
                     if each.service == service and each.since <= minute < each.until), "")  # fmt: skip

    def refuses(self, service: str, tries: int = 1) -> bool:
        """Whether a call is refused at each of ``tries`` tries."""
        how = self.how(service)
        if how == "throttled":
            return all(self._chance.random() < SHARE for _ in range(tries))
        return bool(how)

    def any_down(self) -> bool:
        return any(self.how(service) for service in SERVICES)

    def happens(self, share: float) -> bool:
        return self._chance.random() < share

    def shuffled(self, things: Sequence[Any]) -> list[Any]:
        return self._chance.sample(list(things), len(things))

    def error(self, service: str, code: str = "ServiceUnavailable") -> ClientError:
        """The error that boto3 raises after its retries."""
        code = code if self.how(service) == "unavailable" else "ThrottlingException"
        answer = {"Error": {"Code": code, "Message": "down"}, "ResponseMetadata": {"HTTPStatusCode": 503}}
        return ClientError(answer, service)


def fails_tables(tables: MemoryTables, services: Services) -> None:
    """Make every call of the tables fail while DynamoDB is down."""

    def before() -> None:
        if services.refuses("dynamodb"):
            code = "InternalServerError" if services.happens(0.5) else "ServiceUnavailable"
            raise services.error("dynamodb", code)

    tables.before_call = before


@cache
def _queue(name: str) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = load((RESOURCES / "queues.yaml").read_text())["Resources"][name]["Properties"]
    return properties


@dataclass
class Message:
    body: Any
    sent_at: Instant
    visible_at: Instant
    received: int = 0


class Queue:
    """An SQS queue of the template, which invokes a Lambda. A failed message comes again after the delay of
    `aws/failures.py`. It becomes a dead letter after the receive count of the template.
    """

    def __init__(self, name: str, services: Services, clock: Any) -> None:
        self._services, self._clock = services, clock
        template = _queue(name)
        self.visibility: Millis = template["VisibilityTimeout"] * SECOND
        self.keeps: Millis = template["MessageRetentionPeriod"] * SECOND
        self.most = int(template["RedrivePolicy"]["maxReceiveCount"])
        self.messages: list[Message] = []
        self.dead: list[Any] = []

    def send(self, body: Any, due: Instant = 0) -> None:
        """Send a message. Raises as boto3 does while SQS is down."""
        if self._services.refuses("sqs", SDK_TRIES):
            raise self._services.error("sqs")
        now = self._clock.now()
        self.messages.append(Message(body, now, max(now, min(due, now + MAX_DELAY))))

    def next_at(self) -> Instant | None:
        """When the next message can be received; None if there is none or a service is down."""
        if self._services.how("sqs") or self._services.how("lambda") == "unavailable":
            return None
        return min((each.visible_at for each in self.messages), default=None)

    def receive(self) -> list[Message]:
        """Receive the visible messages for a Lambda. If Lambda is throttled, the receipts count, but none
        is processed.
        """
        now = self._clock.now()
        self.messages = [each for each in self.messages if now - each.sent_at < self.keeps]
        ready = [each for each in self.messages if each.visible_at <= now]
        for each in ready:
            each.received += 1
            each.visible_at = now + self.visibility
            if each.received > self.most:
                self.messages.remove(each)
                self.dead.append(each.body)
        given = [each for each in ready if each.received <= self.most]
        # Lambda retries the invocation as long as its messages are hidden.
        return [] if given and self._services.refuses("lambda", INVOKED) else given

    def settle(self, given: Sequence[Message], failed: Sequence[Message]) -> None:
        for each in given:
            if each not in failed:
                self.messages.remove(each)
            elif not self._services.refuses("sqs", SDK_TRIES):
                each.visible_at = self._clock.now() + delay_s(each.received) * SECOND


class QueuedHints:
    """Hints as messages of a queue. Implements `ports.Hints` as `aws/hints.py` does. A failed send raises only if the
    caller passes ``must``.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        self.send_all([(due, refs)], now)

    def send_all(
        self,
        hints: Sequence[tuple[Instant, Sequence[Ref]]],
        now: Instant,
        *,
        patient: bool = False,
        ahead: bool = False,
        must: bool = False,
        crowd: int = 0,
    ) -> None:
        try:
            for due, refs in hints:
                self._queue.send((tuple(refs), due), due + 2 * SECOND if ahead else due)
        except ClientError:
            if must:
                raise

    def keep_warm(self) -> None:
        with suppress(ClientError):
            self._queue.send(((), 0), 0)


@dataclass
class Invocation:
    act: Callable[[], Any]
    since: Instant
    next_at: Instant
    refused: int = 0
    failed: int = 0


class AsyncLambda:
    """A Lambda that a rule of EventBridge invokes. A refused invocation is retried for six hours, a failed one twice.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
    """

    def __init__(self, services: Services, clock: Any, run: Callable[[Callable[[], Any]], bool]) -> None:
        self._services, self._clock, self._run = services, clock, run
        self.waiting: list[Invocation] = []
        self.dead: list[Callable[[], Any]] = []

    def put(self, act: Callable[[], Any]) -> None:
        now = self._clock.now()
        self.waiting.append(Invocation(act, now, now))

    def work(self) -> None:
        """Run the due invocations. One that was refused before runs twice: EventBridge and Lambda deliver at least
        once.
        """
        now = self._clock.now()
        for each in [each for each in self.waiting if each.next_at <= now]:
            self.waiting.remove(each)
            if self._services.refuses("lambda"):
                pause = min(SECOND * 2**each.refused, 5 * MINUTE)
                self._again(each, each.refused + 1, each.failed, pause)
            elif not self._run(each.act):
                self._again(each, each.refused, each.failed + 1, (each.failed + 1) * MINUTE)
            elif each.refused:
                self._run(each.act)

    def _again(self, each: Invocation, refused: int, failed: int, pause: Millis) -> None:
        now = self._clock.now()
        if failed > 2 or now - each.since > 6 * HOUR:
            self.dead.append(each.act)
        else:
            self.waiting.append(Invocation(each.act, each.since, now + pause, refused, failed))


class Emr(DayEmr):
    """Runs continue while the service does not answer. Some starts without an answer are made."""

    def __init__(self, clock: Any, services: Services) -> None:
        super().__init__(clock)
        self._services = services
        self.started_at: dict[str, Instant] = {}  # by name

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        if not self._services.refuses("emr"):
            return self._start(run, context)
        if self._services.how("emr") == "throttled":
            return NotNow("EMR Serverless refused for now: ThrottlingException")
        if self._services.happens(0.2):
            self._start(run, context)
        return NoAnswer("StartJobRun gave no answer: ServiceUnavailable")

    def _start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        self.started_at.setdefault(run.request.name, self._clock.now())
        return super().start(run, context)

    def status(self, run: Run) -> RunUpdate | None:
        if self._services.refuses("emr"):
            if self._services.how("emr") == "throttled":
                return None
            raise self._services.error("emr")
        return super().status(run)

    def find(self, run: Run) -> str | None:
        self._check()
        return super().find(run)

    def cancel(self, run: Run) -> None:
        self._check()
        super().cancel(run)

    def run_name(self, target_id: str) -> str | None:
        self._check()
        return super().run_name(target_id)

    def _check(self) -> None:
        if self._services.refuses("emr", SDK_TRIES):
            raise self._services.error("emr")


class TargetQueue(DayQueue):
    """The queue of a consumer, in the same SQS."""

    def __init__(self, clock: Any, services: Services) -> None:
        super().__init__(clock)
        self._services = services

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        if self._services.refuses("sqs"):
            return NoAnswer("SQS gave no answer: ServiceUnavailable")
        return super().start(run, context)


class Payloads(MemoryPayloads):
    """The control bucket."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def put_context(self, run_id: str, context: Mapping[str, Any]) -> None:
        self._check()
        super().put_context(run_id, context)

    def context(self, run_id: str) -> Mapping[str, Any] | None:
        self._check()
        return super().context(run_id)

    def put_manifest(self, run_id: str, events: Sequence[Mapping[str, Any]]) -> str:
        self._check()
        return super().put_manifest(run_id, events)

    def manifest(self, run_id: str) -> list[dict[str, Any]] | None:
        self._check()
        return super().manifest(run_id)

    def put_deployment(self, app: str, digest: str, document: Mapping[str, Any]) -> None:
        self._check()
        super().put_deployment(app, digest, document)

    def deployment(self, app: str, digest: str) -> Mapping[str, Any] | None:
        self._check()
        return super().deployment(app, digest)

    def upload(self, app: str, upload: str, most: int) -> bytes | None:
        self._check()
        return super().upload(app, upload, most)

    def put_seen(self, app: str, upload: str, stamps: Mapping[str, str]) -> str:
        self._check()
        return super().put_seen(app, upload, stamps)

    def seen(self, app: str, upload: str, digest: str) -> Mapping[str, str] | None:
        self._check()
        return super().seen(app, upload, digest)

    def _check(self) -> None:
        if self._services.refuses("s3", SDK_TRIES):
            raise self._services.error("s3")


class Lake(MemoryLake):
    """The buckets of the datasets."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def stored(self, bucket: str, key: str, most: int) -> StoredObject | None:
        if self._services.refuses("s3", SDK_TRIES):
            raise self._services.error("s3")
        return super().stored(bucket, key, most)


@dataclass
class HistoryBucket:
    """The bucket of the history, object by object."""

    services: Services
    objects: dict[str, Part] = field(default_factory=dict)

    def put(self, part: Part) -> None:
        if self.services.refuses("s3", SDK_TRIES):
            raise self.services.error("s3")
        self.objects[part.key] = part

    def tell_late(self, keys: Any) -> None:
        if keys and self.services.refuses("s3", SDK_TRIES):
            raise self.services.error("s3")


class Stream:
    """The stream of the runs table, and the Lambda that writes it to the lake. A change that fails for longer than the
    template allows is lost.
    """

    def __init__(self, tables: MemoryTables, services: Services, clock: Any) -> None:
        self._services, self._clock = services, clock
        self.bucket = HistoryBucket(services)
        self.lost: list[Change] = []
        self.oldest: Millis = 0  # of a change, when it was read
        self._changes: list[tuple[Instant, Change]] = []
        self._number = 0
        lake = load((RESOURCES / "functions.yaml").read_text())["Resources"]["Lake"]["Properties"]
        mapping = lake["Events"]["LakeDynamodbEventSource"]["Properties"]
        self.most_age = min(mapping["MaximumRecordAgeInSeconds"] * SECOND, STREAM_KEEPS)
        tables.as_stored = self._stored

    def _stored(self, before: Mapping[str, Any] | None, item: Mapping[str, Any]) -> Mapping[str, Any]:
        if item["pk"]["S"].startswith("RUN#") and item["sk"]["S"].startswith(("A#", "RECORD")):
            kind: type[Any] = Run if item["sk"]["S"].startswith("A#") else Record
            self._number += 1
            change = Change(f"{self._number:020d}", items.from_item(kind, item))
            self._changes.append((self._clock.now(), change))
        return item

    @property
    def behind(self) -> Millis:
        return self._clock.now() - self._changes[0][0] if self._changes else 0

    def work(self) -> None:
        self.oldest = max(self.oldest, self.behind)
        if not self._changes or self._services.how("stream") or self._services.refuses("lambda"):
            return
        now = self._clock.now()
        self.lost += [change for at, change in self._changes if now - at > self.most_age]
        self._changes = [each for each in self._changes if now - each[0] <= self.most_age]
        try:
            failed = land(self.bucket, [change for _, change in self._changes], Prices(), now)
        except Exception:  # the whole batch comes again
            return
        first = min(failed, default=None)
        self._changes = [each for each in self._changes if first is not None and each[1].sequence >= first]
