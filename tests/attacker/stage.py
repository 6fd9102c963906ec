"""The app itself on tables in memory, with roles enforced. It notes each change of a row and each call of a target."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pkgutil import iter_modules
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from app import app
from chalicelib import log
from chalicelib.aws.tables.audited import AuditedLedger
from chalicelib.core.steps import Steps
from chalicelib.core.targets.answers import Never
from chalicelib.web import audit, quotas, routes
from chalicelib.wiring import AUTHOR, acting
from sluice.testing.engine import stopwatch
from sluice.testing.memory_tables import MemoryTables
from tests.attacker import cast
from tests.attacker.cast import ADMINISTRATOR, BUCKET, Person, Space
from tests.support import tables
from tests.support.snapshot import Snapshot
from tests.support.world import World
from tests.web import answer_schemas

Item = Mapping[str, Any]
CONTEXT = SimpleNamespace(aws_request_id="r1", function_name="api", memory_limit_in_mb="512")


@dataclass(frozen=True)
class Asked:
    """A request. ``resource`` and ``parameters`` are what API Gateway makes of its path."""

    person: Person
    method: str
    resource: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def path(self) -> str:
        clean = {name: quote(text.encode(errors="replace"), safe="") for name, text in self.parameters.items()}
        return re.sub(r"\{(\w+)\}", lambda found: clean.get(found[1], found[0]), self.resource)

    @property
    def said(self) -> str:
        """All texts of the request, as its signer wrote them."""
        body = self.body or ""
        with suppress(ValueError, RecursionError):
            body += json.dumps(json.loads(body), ensure_ascii=False)
        return "\n".join([self.resource, *self.parameters.values(), *self.query.values(), *self.headers.values(), body])

    def with_texts(self, changed: Callable[[str], str]) -> Asked:
        """The request with all its texts changed."""
        parameters, query, headers = (
            {name: changed(text) for name, text in given.items()}
            for given in (self.parameters, self.query, self.headers)
        )
        body = None if self.body is None else changed(self.body)
        return replace(self, parameters=parameters, query=query, headers=headers, body=body)

    def __str__(self) -> str:
        parts = [f"{self.person.title} ({self.person.arn})", f"{self.method} {self.path}"]
        parts += [f"query {dict(self.query)}"] if self.query else []
        parts += [f"headers {dict(self.headers)}"] if self.headers else []
        return "\n  ".join([*parts, *([self.body[:3_000]] if self.body is not None else [])])


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def content(self) -> Any:
        return json.loads(self.text) if self.text else None


@dataclass(frozen=True)
class Changed:
    """A change of a row: its table, key, and the item before and after; None for no item."""

    table: str
    key: tuple[str, str]
    before: Item | None
    after: Item | None


class NotingTables(MemoryTables):
    """Tables that note each change."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Changed] = []
        for logical_id, arguments in tables.definitions().items():
            self.create_table(logical_id, **arguments)
        self._names = {id(table): name for name, table in self._tables.items()}

    def forget_tokens(self) -> None:
        """Carry out transactions again under the tokens of former ones: random ids begin again, too."""
        self._tokens.clear()

    def _store(self, table: Any, key: tuple[str, str], item: Item | None) -> None:
        before = table.items.get(key)
        super()._store(table, key, item)
        if item != before:
            self.noted.append(Changed(self._names[id(table)], key, before, table.items.get(key)))


_present: dict[str, Any] = {}


def installed(patch: pytest.MonkeyPatch) -> None:
    """Let the app serve the stage that has begun last, and draw random ids by its generator, so that a replay has the
    same ids."""
    spend = Steps.spend

    def counted(self: Steps, count: int) -> None:
        _present["stage"].steps += count if self.whole is None else 0
        spend(self, count)

    patch.setattr(Steps, "spend", counted)
    patch.setattr(log.logger, "info", lambda *args, **more: None)  # else the log takes a third of the time
    modules = (f"chalicelib.web.routes.{module.name}" for module in iter_modules(routes.__path__))
    for module in ("chalicelib.web.access", "chalicelib.web.filters", *modules):
        patch.setattr(f"{module}.ports", lambda: _present["stage"].ports, raising=False)

    def draw(bits: int) -> int:
        return int(_present["stage"].random.getrandbits(bits))

    def drawn() -> uuid.UUID:
        return uuid.UUID(int=draw(128), version=4)

    for place in ("uuid", "chalicelib.web.audit", "chalicelib.web.http", "chalicelib.aws.tables.audited"):
        patch.setattr(f"{place}.uuid4", drawn)
    patch.setattr("secrets.token_hex", lambda size=32: f"{draw(8 * size):0{2 * size}x}")


class Stage:
    """The installation, in which each episode begins with the same rows."""

    def __init__(self, spaces: tuple[Space, Space, Space]) -> None:
        self.spaces = spaces
        self.tables = NotingTables()
        names = {f"{name.removesuffix('Table').lower()}_table": name for name in tables.definitions()}
        self.world = World(
            self.tables, names, stopwatch(), authorization="enforce", account=cast.ACCOUNT,
            administrators=(cast.role("platform"),), quota_requests_per_second=1e5, start_rate_per_second=100,
            start_burst=1_000,
        )  # fmt: skip
        ports = self.world.ports
        ledger = AuditedLedger(ports.ledger, AUTHOR.get, ports.clock, 400)
        self.ports = replace(ports, ledger=ledger, author=AUTHOR.get, acting=acting)
        self.random = Random()
        self._forget("first")
        self.leases: dict[str, str] = {}
        self.said: dict[str, str] = {}  # by namespace: what was written into it at the beginning
        self._set_up()
        self.world.settle()
        self.tables.noted.clear()
        self._start, self._first_leases = Snapshot(self.world), dict(self.leases)

    def begin(self) -> None:
        """Restore the rows of the beginning."""
        self._start.restore()
        self._forget("then")
        self.tables.noted.clear()
        self.leases = dict(self._first_leases)

    def _forget(self, when: str) -> None:
        """Begin anew. ``when`` keeps the ids of later requests apart from those whose rows are there already."""
        _present["stage"] = self
        self.when = when
        self.random.seed(when)
        self.sent = self.steps = 0  # requests, and the steps of computation of the last one
        self.tables.forget_tokens()
        quotas.memory.cache_clear()
        audit.refusals.cache_clear()

    def send(self, asked: Asked) -> Answer:
        """The answer of the app, as API Gateway gets it from the Lambda."""
        self.sent += 1
        self.steps = 0
        event = {
            "httpMethod": asked.method,
            "path": asked.path,
            "headers": {"content-type": "application/json", **asked.headers},
            "multiValueHeaders": {},
            "multiValueQueryStringParameters": {name: [value] for name, value in asked.query.items()} or None,
            "pathParameters": dict(asked.parameters) or None,
            "stageVariables": None,
            "body": asked.body,
            "isBase64Encoded": False,
            "requestContext": {
                "httpMethod": asked.method,
                "path": asked.path,
                "resourcePath": asked.resource,
                "requestId": f"{self.when}-{self.sent}",
                "identity": {"userArn": asked.person.arn, "user": "AROAEXAMPLE:ada", "sourceIp": "192.0.2.7"},
            },
        }
        answer = app(event, CONTEXT)
        if not app.routes.get(asked.resource, True):
            del app.routes[
                asked.resource
            ]  # Chalice keeps its lookups among the routes, where other tests would find them
        return Answer(answer["statusCode"], answer.get("headers") or {}, answer["body"] or "")

    def settled(self) -> list[str]:
        """Let everything settle. Returns the ids of the runs that targets were called for."""
        targets = self.world.targets
        begun, sent = len(targets.emr.runs), len(targets.queue.messages)
        self.world.settle()
        names = [run.name.rpartition("-")[0] for run in list(targets.emr.runs.values())[begun:]]
        return names + [run_id for run_id, _ in targets.queue.messages[sent:]]

    @contextmanager
    def notes(self) -> Iterator[list[Changed]]:
        """The changes of rows within the block."""
        self.tables.noted = noted = []
        yield noted

    def partition_of(self, dataset: str, day: int) -> str:
        return f"raw/{dataset}/year=2026/month=03/day={day:02d}/part-0.parquet"

    # -- the beginning -----------------------------------------------------------------------------------------------

    def _do(self, method: str, target: str, body: Any = None, person: Person = ADMINISTRATOR) -> Any:
        found = answer_schemas.operation(method, target)
        assert found is not None, target
        matched = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", found[0]), target)
        assert matched is not None
        text = None if body is None else json.dumps(body)
        answer = self.send(Asked(person, method, found[0], matched.groupdict(), body=text))
        assert answer.status < 300, (method, target, answer.text)
        space = matched.groupdict().get("ns", "")
        self.said[space] = f"{self.said.get(space, '')}\n{text or ''}"
        return answer.content

    def _set_up(self) -> None:
        ours, theirs, third = self.spaces
        pairs = ((ours, theirs), (theirs, ours), (third, ours))
        for space, other in pairs:
            ns = f"/v1/namespaces/{space.name}"
            self._do("PUT", ns, {"description": space.word("told")})
            self._do("PUT", f"{ns}/allowed", cast.allowed(space))
            members = cast.access(space, other)
            if space is third:
                members = {"members": [{"member": cast.role(third.word("admin")), "roles": ["admin"]}]}
            self._do("PUT", f"{ns}/access", members)
            self._do("PUT", f"{ns}/calendars/{space.word('days')}", {"days": ["12-25"]})
            self._do("PUT", f"{ns}/apps/{space.app}", cast.app(space, other))
        for space, other in pairs[:2]:
            self._do("PUT", f"/v1/namespaces/{space.name}/grants", cast.grants(space, other))
        for space, other in pairs[:2]:
            for name, document in cast.crossing(space, other).items():
                self._do("PUT", f"/v1/namespaces/{space.name}/apps/{space.app}/schedules/{name}", document)
        for space, _ in pairs:
            self._live(space)
        for space, _ in pairs[:2]:  # jobs of both namespaces hold the slots of a pool, and wait for them
            rents = f"/v1/namespaces/{space.name}/apps/{space.app}/schedules/{space.word('rents')}/run"
            for _ in range(2):
                self._do("POST", rents, {})
        self.world.settle()

    def _live(self, space: Space) -> None:
        """Jobs and runs of each kind: waiting, running, ended, leased, queued; a backfill, an upload, a dead letter."""
        ns = f"/v1/namespaces/{space.name}"
        one = f"{ns}/apps/{space.app}"
        schedules = f"{one}/schedules"
        for noun in ("feed", "shared", "vault"):
            for day in (1, 2):
                self.world.upload(self.partition_of(space.word(noun), day), BUCKET)
        self.world.settle()
        self.world.targets.queue.answers.append(Never(f"the queue of {space.word('told')} is gone"))
        self._do("POST", f"{schedules}/{space.word('timed')}/run", {})
        self.world.settle()
        for noun in ("asked", "vetted", "pulls", "slow", "timed"):
            self._do("POST", f"{schedules}/{space.word(noun)}/run", {})
        self._do("POST", f"{schedules}/{space.word('slow')}/run", {})
        self.world.settle()
        self.world.finish()
        self._do("POST", f"{schedules}/{space.word('fed')}/run", {})
        day = {"year": "2026", "month": "03", "day": "01"}
        self._do("POST", f"{schedules}/{space.word('fed')}/backfills", {"partitions": {"values": [day]}})
        self._do("POST", f"{ns}/reprocess", {"dataset": space.word("feed"), "partition": day})
        self._do("POST", f"{one}/dags/{space.word('whole')}/run", {})
        self._do("PUT", f"{one}/messages/{space.word('mine')}",
                 {"due_time": "10h", "workflow": space.word("send"), "data": {"n": space.word("aside")}})  # fmt: skip
        begun = self._do("POST", f"{one}/uploads")
        content = json.dumps(cast.app(space, space)).encode()
        self.world.payloads.uploads[f"{space.name}.{space.app}", begun["upload"]] = content
        self.world.settle()
        self._do("POST", f"{schedules}/{space.word('pulls')}/run", {})
        self.world.settle()
        [lease] = self._do("POST", f"/v1/workers/{space.of_space('etl')}/claim", {"worker": "ann", "wait": 0})["leases"]
        self.leases[lease["lease"]] = space.name
        self.world.settle()
