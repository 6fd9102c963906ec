"""Draws requests: an operation of the OpenAPI document, a signer, and values that are sound, foreign or odd.

A body is a sound document of its kind with drawn names; in some of them one value is another one. A kind without a
document here has the example of the OpenAPI document, so that a new route is drawn without a change of this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.attacker import cast
from tests.attacker.cast import BUCKET, KEYS, OTHER_ACCOUNT, Document, Person, Space
from tests.attacker.stage import Asked
from tests.fuzz.requests import DOCUMENT, OPERATIONS
from tests.fuzz.values import get, places, replaced, without

T = Any
ODD = (
    "..", "../..", ".", "%2e%2e", "a/../b", "..%2f..", "a%00b", "a\x00b", "\x1b]52;c;x\x07", "a\nb", "a\r\nX-Y: z", "",
    " ", "*", "?", "{}", "[0]", "~", "a~b", "A", "é", "\ud800", "\u202e", "null", "a" * 64, "a" * 5_000, "-", "_",
    "a.b.c.d.e", "#", "STATE", "APP#x", "' or 1=1", "$where", "__proto__", "arn:aws:iam::123456789012:root",
)  # fmt: skip
METHODS = ("PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "DELETE", "POST", "PUT")
STATES = ("enabled", "hold", "disabled", "PENDING_LAUNCH", "RUNNING", "SUCCEEDED", "FAILED", "STARTING", "paused")
NOUNS: dict[str, tuple[str, ...]] = {
    "workflows": ("clean", "lent", "asks", "send", "pulled", "vaulted"),
    "schedules": ("fed", "timed", "paid", "asked", "vetted", "pulls", "slow", "joins", "follows", "borrows", "begs"),
    "datasets": ("feed", "shared", "vault"), "pools": ("slots", "gpu", "etl"), "policies": ("calm", "strict"),
    "calendars": ("days",), "dags": ("whole",), "messages": ("mine",),
}  # fmt: skip
NEW = ("new", "more", "other")
OF_APP = ("workflows", "schedules", "dags", "messages")
# What a field of a body or a query names, by the name of the field.
FIELDS = {
    "workflow": "workflows", "workflows": "workflows", "dataset": "datasets", "datasets": "datasets", "pool": "pools",
    "policy": "policies", "calendar": "calendars", "schedule": "schedules", "schedules": "schedules",
    "names": "schedules", "upto": "workflows", "app": "apps",
}  # fmt: skip
SPARK_KEYS = (
    "spark.executor.cores", "spark.sql.shuffle.partitions", "spark.jars", "spark.jars.packages", "spark.repl.class.uri",
    "spark.sql.hive.metastore.jars", "spark.sql.hive.metastore.jars.path", "spark.plugins",
    "spark.driver.extraJavaOptions", "spark.driver.resource.gpu.discoveryScript",
    "spark.executor.resource.gpu.discoveryScript",
    "spark.sql.catalog.x", "spark.serializer", "spark.kryo.registrator", "spark.hadoop.fs.x.impl", "spark.files",
    "spark.submit.pyFiles", "spark.archives", "spark.eventLog.dir",
)  # fmt: skip
# Forms of the URL of a queue: {a} is an account, {n} the name of a queue, {r} a region.
QUEUES = (
    "https://sqs.{r}.amazonaws.com/{a}/{n}", "https://sqs.{r}.amazonaws.com/{a}/{n}/", "https://SQS.{r}.amazonaws.com/{a}/{n}",
    "https://sqs.{r}.amazonaws.com:443/{a}/{n}", "https://sqs-fips.{r}.amazonaws.com/{a}/{n}", "https://sqs.{r}.api.aws/{a}/{n}",
    "https://{r}.queue.amazonaws.com/{a}/{n}", "https://queue.amazonaws.com/{a}/{n}", "http://sqs.{r}.amazonaws.com/{a}/{n}",
    "https://sqs.{r}.amazonaws.com/{a}/{n}?x=1", "https://sqs.{r}.amazonaws.com/{a}/{n}#x", "https://x@sqs.{r}.amazonaws.com/{a}/{n}",
    "https://sqs.{r}.amazonaws.com@evil.example/{a}/{n}", "https://sqs.{r}.amazonaws.com.evil.example/{a}/{n}",
    "https://sqs.{r}.amazonaws.com//{a}/{n}", "https://sqs.{r}.amazonaws.com/./{a}/{n}", "https://sqs.{r}.amazonaws.com/{a}/x/../{n}",
    "https://vpce-0a.sqs.{r}.vpce.amazonaws.com/{a}/{n}", "https://sqs.{r}.amazonaws.com/{a}/{n}%2f", "https://evil.example/{a}/{n}",
    "https://sqs.{r}.amazonaws.com.cn/{a}/{n}",
)  # fmt: skip
PATTERNS: tuple[Any, ...] = (
    {"n": [1]}, {"n": [{"numeric": [">", 0]}]}, {"$or": [{"a": list(range(40))}] * 40},
    {"a": [{"wildcard": "*1*2*"}] * 90}, {"a": [{"wildcard": "*a*a*a*a*b"}]},
    {"a": [{"anything-but": {"prefix": "x"}}]}, {"a": {"b": {"c": [None]}}}, {"$or": []}, {"a": [{"exists": False}]},
)  # fmt: skip


# Operations that are drawn more often than others, because much depends on their bodies or on what went before.
FAVOURED = {
    "put_dataset": 8, "put_workflow": 6, "put_schedule": 6, "claim_runs": 3, "approve_job": 6, "run_now": 4,
    "put_message": 3, "deploy_app": 3, "enable_schedule": 2, "post_events": 4, "list_limits": 5, "graph": 2,
    "get_pool": 3, "get_policy": 2, "run_lineage": 4, "get_partition": 4, "why_job": 3, "why_schedule": 3,
    "show_reprocess": 2, "drop_dead_letter": 2, "redrive_dead_letter": 2,
}  # fmt: skip
WEIGHTS = [FAVOURED.get(operation["operationId"], 1) for _, _, operation in OPERATIONS]


@dataclass
class Known:
    """What an attacker may name: ids by the parameter of a path and the namespace, and what answers held."""

    ids: dict[str, dict[str, list[str]]]
    cursors: list[tuple[str, str]] = field(default_factory=list)  # the list of each, and the cursor
    keys: list[str] = field(default_factory=list)  # of idempotency
    arranged: list[tuple[str, str]] = field(default_factory=list)  # a schedule, and the user or role who arranged it


class Draw:
    """Draws the requests of one episode. ``odd`` is the share of values that are foreign or odd."""

    def __init__(self, rng: Random, spaces: Sequence[Space], known: Known, odd: float) -> None:
        self.rng, self.spaces, self.known, self.odd = rng, spaces, known, odd
        self.cast = cast.people(*spaces[:2])
        self.own = spaces[0]

    def request(self) -> Asked:
        rng = self.rng
        [(method, resource, operation)] = rng.choices(OPERATIONS, WEIGHTS)
        person = rng.choice(self.cast)
        self.own = rng.choice(self._spaces_of(person))
        if rng.random() < 0.5:  # else most requests fail for want of a right
            person = rng.choice(self._able(operation.get("x-needs", "signed")))
        place = self.space()
        parameters, query, headers = self.inputs(resource, operation, place)
        body = None
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]
            body = self._sent(self.body(schema))
        if rng.random() < 0.01:
            method, resource = self._unknown(method, resource)
        if operation["operationId"] == "approve_job" and rng.random() < 0.7:
            person, parameters = self._of_arranged(person, parameters)
        if operation["operationId"] in ("run_now", "enable_schedule") and rng.random() < 0.5:
            person, parameters = self._arranging()
        return Asked(person, method, resource, parameters, query, headers, body)

    # -- who ---------------------------------------------------------------------------------------------------------

    def _spaces_of(self, person: Person) -> Sequence[Space]:
        return [space for space in self.spaces[:2] if space.mark in (person.arn or "")] or self.spaces[:2]

    def _able(self, needs: str) -> list[Person]:
        """People of the own namespace who have a right there."""
        roles = {name for name, rights in cast.RIGHTS.items() if needs in rights or needs == "signed"} or {"admin"}
        titles = {f"{name} of {self.own.name}" for name in roles}
        both = [person for person in self.cast if self.own.mark in (person.arn or "") and " and " in person.title]
        return [person for person in self.cast if person.title in titles] + both

    def _arranging(self) -> tuple[Person, Document]:
        """Someone who approves, too, and a schedule whose jobs wait for that."""
        able = [each for each in self.cast if self.own.mark in (each.arn or "") and " and approver" in each.title]
        name = self.own.word(self.rng.choice(("asked", "vetted", "begs")))
        return self.rng.choice(able), {"ns": self.own.name, "app": self.own.app, "name": name}

    def _of_arranged(self, person: Person, parameters: Document) -> tuple[Person, Document]:
        """Someone who has arranged a schedule, and one of its jobs."""
        jobs = [job for ids in self.known.ids.get("job_id", {}).values() for job in ids]
        pairs = [(job, by) for schedule, by in self.known.arranged for job in jobs if job.startswith(f"{schedule}.")]
        if not pairs:
            return person, parameters
        job, by = self.rng.choice(pairs)
        return self.rng.choice([each for each in self.cast if each.member == by]), {"job_id": job}

    # -- names -------------------------------------------------------------------------------------------------------

    @property
    def strays(self) -> bool:
        return self.rng.random() < self.odd

    def space(self) -> Space:
        """The own namespace mostly, else one of the others."""
        return self.rng.choice(self.spaces) if self.strays else self.own

    def text(self) -> str:
        return self.rng.choice(ODD)

    def word(self, kind: str, space: Space) -> str:
        noun = self.rng.choice(NOUNS.get(kind, NEW) if self.rng.random() < 0.85 else NEW)
        return space.word(noun)

    def name(self, kind: str, space: Space) -> str:
        """A short name, for a path."""
        if self.strays and self.rng.random() < 0.3:
            return self.text()
        return self.word(kind, self.space() if self.strays else space)

    def reference(self, kind: str) -> str:
        """A name in a document: short in the own namespace, full in others, where it mostly is one that is lent."""
        if self.strays and self.rng.random() < 0.2:
            return self.text()
        space = self.space()
        if kind == "apps":
            return self.rng.choice((space.app, f"{space.name}.{space.app}"))
        word = self.word(kind, space)
        full = f"{space.name}.{space.app}.{word}" if kind in OF_APP else f"{space.name}.{word}"
        return word if space == self.own and self.rng.random() < 0.8 else full

    def id(self, parameter: str, space: Space) -> str:
        found = self.known.ids.get(parameter, {}).get(space.name, [])
        if not found or (self.strays and self.rng.random() < 0.3):
            return self.text()
        chosen = self.rng.choice(found)
        if self.strays and self.rng.random() < 0.3:
            return self.rng.choice(
                (chosen[:-1], chosen + "0", chosen.upper(), chosen.replace(space.name, self.own.name, 1))
            )
        return chosen

    # -- paths, queries, headers -------------------------------------------------------------------------------------

    def inputs(self, resource: str, operation: Document, place: Space) -> tuple[Document, Document, Document]:
        parameters: Document = {}
        query: Document = {}
        headers: Document = {}
        for each in operation.get("parameters", ()):
            name, where = each["name"], each["in"]
            if where == "path":
                parameters[name] = self._segment(name, resource, place)
            elif self.rng.random() < (
                0.6 if name in ("name", "around", "values") else 0.3 if where == "query" else 0.15
            ):
                (query if where == "query" else headers)[name] = self._value(name, resource)
        if self.rng.random() < 0.01:
            query[self.rng.choice(("x", "limit", "cursor", "ns"))] = self.text()
        if self.rng.random() < 0.02:
            headers[self.rng.choice(("If-Match", "Idempotency-Key", "X-Forwarded-For", "Host"))] = self.text()
        clean = {name: text.encode(errors="replace").decode() for name, text in parameters.items()}
        # API Gateway passes no empty segment of a path, and each header on one line.
        headers = {name: "".join(char for char in text if char.isprintable()) for name, text in headers.items()}
        return {name: text or "x" for name, text in clean.items()}, query, headers

    def _segment(self, name: str, resource: str, place: Space) -> str:
        if name == "ns":
            return self.text() if self.strays and self.rng.random() < 0.15 else place.name
        if name == "app":
            return self.name("apps", place) if self.rng.random() < 0.03 else place.app
        if name == "pool":
            return place.of_space(self.rng.choice(("etl", "etl", "hpc", "slots")))
        if name == "name":
            return self.name(resource.split("/{name}")[0].rpartition("/")[2], place)
        kinds = {"/dags/": "dag_run", "/dead-letters/": "dead_letter"} if name == "run_id" else {}
        kind = next((kind for part, kind in kinds.items() if part in resource), name)
        return self.id(kind, self.space() if self.strays else place)

    def _value(self, name: str, resource: str) -> str:
        rng = self.rng
        if name == "cursor":
            same = [cursor for path, cursor in self.known.cursors if path == resource]
            every = [cursor for _, cursor in self.known.cursors] or [""]
            return (
                rng.choice(same) if same and rng.random() < 0.5 else rng.choice((*every, self.text(), "eyJhIjogMX0="))
            )
        if name == "Idempotency-Key":
            key = rng.choice((*self.known.keys, f"key-{rng.randrange(5)}", "k" * 300))
            self.known.keys = [*self.known.keys, key][-5:]
            return key
        if name == "If-Match":
            return rng.choice(('"1"', '"2"', "1", "*", '"x"', 'W/"1"', self.text()))
        if self.strays and rng.random() < 0.3:
            return self.text()
        if name in FIELDS:
            return self.reference(FIELDS[name])
        of_graph = ("workflow", "dataset", "schedule")
        kinds = of_graph if name == "around" else (*of_graph, "pool", "pool", "pool", "policy", "application", "emr")
        named = self._named(rng.choice(kinds), self.space())
        known: dict[str, Sequence[str]] = {
            "limit": ("1", "2", "50", "500", "0", "x"), "state": STATES, "day": ("2026-03-02", "2026-02-30"),
            "from": ("2026-03-01T00:00:00Z", "2026"), "to": ("2026-03-03T00:00:00Z", "2027"), "tag": ("team", "team=x"),
            "name": (named, named.partition(":")[2]), "around": (named,), "queued_in": (named,),
            "q": (self.space().mark,), "who": (self.space().mark, "ada"), "order": ("asc", "desc"),
            "kind": ("schedule", "job", "fire", "run_now"),
            "values": ("2026/03/01", "../..", "2026/03/*"), "outcome": ("changed", "refused"), "zone": ("UTC", "x"),
            "upload": self.known.ids.get("upload", {}).get(self.space().name, ["x"]),
        }  # fmt: skip
        return rng.choice(known.get(name, ("true", "false", "1", "2", "10")))

    def _named(self, kind: str, space: Space) -> str:
        if kind in ("application", "emr"):
            return f"{kind}:00app"
        plural = {"policy": "policies"}.get(kind, f"{kind}s")
        word = self.word(plural, space)
        return f"{kind}:{space.name}.{space.app}.{word}" if plural in OF_APP else f"{kind}:{space.name}.{word}"

    def _unknown(self, method: str, resource: str) -> tuple[str, str]:
        if self.rng.random() < 0.5:
            return self.rng.choice(METHODS), resource
        return method, self.rng.choice(
            (f"{resource}/x", "/", "/v1", "/v2/health", "/v1/../v1/health", resource.upper())
        )

    # -- bodies ------------------------------------------------------------------------------------------------------

    def body(self, content: Document) -> Any:
        kind = content["schema"]["$ref"].rpartition("/")[2]
        make: Callable[[], Any] | None = getattr(self, f"_a_{kind.lower()}", None)
        return make() if make is not None else self._named_anew(content.get("example", {}))

    def _sent(self, document: Any) -> str:
        rng = self.rng
        while rng.random() < self.odd / 2:
            path = rng.choice(sorted(places(document), key=repr))
            if path and rng.random() < 0.2:
                document = without(document, path)
            else:
                document = replaced(document, path, self._other(get(document, path), str(path[-1]) if path else ""))
        text = json.dumps(document)
        return rng.choice((text[:-1], f"{text}{text}", "[" * 2_000, "")) if rng.random() < 0.01 else text

    def _other(self, value: Any, key: str) -> Any:
        if key in FIELDS:
            return self.reference(FIELDS[key])
        if isinstance(value, str):
            return self.rng.choice((self.text(), self.space().name, self.reference(self.rng.choice(list(NOUNS)))))
        return self.rng.choice((None, True, 0, -1, 1, 2**63, 1e308, [], {}, [value], {"x": value}, self.text()))

    def _named_anew(self, example: Any, key: str = "") -> Any:
        """The example with names of the stage."""
        if isinstance(example, dict):
            return {name: self._named_anew(value, name) for name, value in example.items()}
        if isinstance(example, list):
            return [self._named_anew(value, key) for value in example]
        return self.reference(FIELDS[key]) if key in FIELDS and isinstance(example, str) else example

    def _maybe(self, share: float, **fields: Callable[[], Any]) -> Document:
        return {name: make() for name, make in fields.items() if self.rng.random() < share}

    def _described(self) -> Document:
        return self._maybe(0.2, description=lambda: self.own.word("told"), tags=lambda: {"team": self.own.word("crew")})

    def _a_namespace(self) -> Document:
        return self._described()

    def _a_access(self) -> Document:
        document = cast.access(self.own, self.rng.choice([space for space in self.spaces[:2] if space != self.own]))
        keep = [each for each in document["members"] if self.rng.random() < 0.95 or "admin" in each["roles"]]
        return {"members": keep}

    def _a_allowed(self) -> Document:
        return cast.allowed(self.space())

    def _a_quotas(self) -> Document:
        return {"schedules": self.rng.choice((0, 1_000))}

    def _a_grants(self) -> Document:
        to = self.rng.choice([space for space in self.spaces if space != self.own or self.strays])
        document = cast.grants(self.own, to)
        return document if self.rng.random() < 0.7 else {"grants": []}

    def _a_calendar(self) -> Document:
        return {"days": ["12-25", "2026-03-06"]}

    _a_holidaycalendar = _a_calendar

    def _a_policy(self) -> Document:
        return {"max_events": self.rng.choice((1, 5, 500)), "interval": "1m", **self._described()}

    def _a_pool(self) -> Document:
        shares = {self.reference("apps"): {"reserved": 1}} if self.rng.random() < 0.2 else {}
        return {"size": self.rng.choice((1, 2, 8)), "shares": shares, **self._described()}

    def _a_dataset(self) -> Document:
        return {"bucket": self.rng.choice((BUCKET, BUCKET, "lake", "control", "elsewhere")), "prefix": self._prefix(),
                "keys": self.rng.choice((KEYS, KEYS[2:], [])), **self._described()}  # fmt: skip

    def _a_givenprefix(self) -> Document:
        return {"bucket": BUCKET, "prefix": self._prefix(), "nested": self.rng.random() < 0.5}

    def _prefix(self) -> str:
        """A folder of the shared bucket: of a dataset of any namespace, within one, or around it."""
        space = self.space()
        whole = f"raw/{space.word(self.rng.choice((*NOUNS['datasets'], 'new')))}/"
        inner = self.rng.choice(("year=2026/", "year=2026/month=03/", "_x/", "in/", "day=02/"))
        odd = self.rng.choice(("history/", "audit/", "context/", "/", "", "raw", "raw/../", "raw//x/", whole[:-1]))
        return self.rng.choices((whole, whole + inner, "raw/", odd), (8, 5, 1, 1))[0]

    def _queue(self) -> str:
        space, rng = self.space(), self.rng
        if not self.strays:
            return cast.queue_url(self.own)
        account = rng.choice((cast.ACCOUNT, cast.ACCOUNT, OTHER_ACCOUNT))
        name = rng.choice((f"sluice-target-{space.name}-q", "hints", "sluice-prod-hints", "other"))
        return rng.choice(QUEUES).format(a=account, n=name, r=rng.choice(("us-east-1", "eu-west-1")))

    def _target(self) -> Document:
        rng = self.rng
        account = OTHER_ACCOUNT if self.strays else cast.ACCOUNT
        queue = {"type": "sqs", "queue_url": self._queue()}
        emr = cast.spark(self.space() if self.strays else self.own)
        if rng.random() < 0.4:
            emr["spark"] = {rng.choice(SPARK_KEYS): rng.choice(("1", "s3://evil/x.jar", "x"))}
        own = self.own.name
        others: tuple[Document, ...] = (
            {"type": "worker", "pool": self.own.word("etl")},
            {"type": "sns", "topic_arn": f"arn:aws:sns:us-east-1:{account}:sluice-target-{own}-t"},
            {"type": "lambda", "function": f"arn:aws:lambda:us-east-1:{account}:function:sluice-target-{own}-f"},
            {"type": "http", "url": rng.choice(("https://example.com/h", "https://169.254.169.254/latest", "http://x"))},
            {"type": "step_functions",
             "state_machine": f"arn:aws:states:us-east-1:{account}:stateMachine:sluice-target-{own}-m"},
        )  # fmt: skip
        return rng.choices((queue, emr, rng.choice(others)), (5, 4, 1))[0]

    def _approval(self) -> Document:
        people = [cast.role(self.own.word(name)) for name in ("approver", "double")]
        people += [cast.role(space.word("both")) for space in self.spaces[:2]]
        return {"type": "approval", "people": people}

    def _a_workflow(self) -> Document:
        more = self._maybe(0.15, approval=self._approval, pool=lambda: self.reference("pools"))
        return {"target": self._target(), **more, **self._described()}

    def _trigger(self) -> Document:
        rng = self.rng
        event = {"type": "event", "event": rng.choice(("sales.paid", "sales.x", "hr.x")), **self._maybe(
            0.4, namespace=lambda: self.space().name, pattern=lambda: rng.choice(PATTERNS))}  # fmt: skip
        return rng.choice((
            {"type": "time", "expression": rng.choice(("0 5 * * *", "*/5 * * * *", "@every 1m"))},
            {"type": "partition", "dataset": self.reference("datasets")},
            {"type": "program_status", "workflow": self.reference("workflows")},
            event,
        ))  # fmt: skip

    def _a_newschedule(self) -> Document:
        trigger = self._trigger()
        more = self._maybe(
            0.15, policy=lambda: self.reference("policies"), pool=lambda: self.reference("pools"),
            constraints=lambda: [self.rng.choice((self._approval(), cast.ONE_AT_A_TIME))],
            properties=lambda: {"k": self.own.word("aside")}, priority=lambda: self.rng.randrange(1, 10),
            notify=lambda: [{"on": ["failed"], "to": {"type": "sqs", "queue_url": self._queue()}}],
        )  # fmt: skip
        by = {"by": KEYS} if trigger["type"] == "partition" and self.rng.random() < 0.5 else {}
        workflow = self.reference("workflows")
        return {
            "workflow": workflow,
            "trigger": trigger,
            "enabled": self.rng.random() < 0.7,
            **by,
            **more,
            **self._described(),
        }

    def _a_newdag(self) -> Document:
        nodes = {self.own.word(noun): {"workflow": self.reference("workflows")} for noun in ("first", "last")}
        edge = {"from": self.own.word("first"), "to": self.own.word("last")}
        return {"trigger": self._trigger(), "nodes": nodes, "edges": [edge], "enabled": True}

    def _a_message(self) -> Document:
        where = self.rng.choice(({"workflow": self.reference("workflows")}, {"target": self._target()}))
        when = self.rng.choice(({"due_time": "10m"}, {"due_time": "0s"}, {"schedule": "0 5 * * *"}))
        return {**when, **where, "data": {"n": self.own.word("aside")}}

    def _a_app(self) -> Document:
        other = self.rng.choice([space for space in self.spaces if space != self.own])
        document = cast.app(self.space() if self.strays else self.own, other)
        makers = {
            "datasets": self._a_dataset, "workflows": self._a_workflow, "schedules": self._a_newschedule,
            "dags": self._a_newdag,
        }  # fmt: skip
        part = self.rng.choice(list(makers))
        make = makers[part]
        document[part][self.own.word("new")] = make()
        if self.rng.random() < 0.3:
            document = {part: {self.own.word("new"): document[part][self.own.word("new")]}}
        return document

    def _day(self) -> Document:
        day = self.rng.choice(("01", "02", "03", "09", "..", "*", "1/../2")) if self.strays else "01"
        return {"year": "2026", "month": "03", "day": day}

    def _a_newpartition(self) -> Document:
        return {"partition": {"year": "2026", "month": "03", "day": f"{self.rng.randrange(3, 9):02d}"}}

    def _a_events(self) -> Document:
        kinds = ("sales.paid", "sales.paid", "hr.x")
        more = self._maybe(0.3, id=lambda: f"n{self.rng.randrange(5)}")
        return {"events": [{"type": self.rng.choice(kinds), "payload": {"n": 1, "a": self._many()}, **more}]}

    def _many(self) -> list[int | str]:
        size = 3_000 if self.rng.random() < 0.1 else 20
        return [7] * size if self.rng.random() < 0.5 else ["1212" * 5] * size

    def _a_runnow(self) -> Document:
        return self._maybe(0.15, partition=self._day, properties=lambda: {"k": self.own.word("aside")},
                           at=lambda: "2026-03-02T13:00:00Z")  # fmt: skip

    def _a_backfill(self) -> Document:
        ranges = ({"partitions": {"values": [self._day()]}},
                  {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T12:00:00Z"},
                  {"partitions": {"dataset": self.reference("datasets"), "values": [self._day()]}})  # fmt: skip
        return {**self.rng.choice(ranges), "dry_run": self.rng.random() < 0.3}

    def _a_reprocess(self) -> Document:
        run = self.id("run_id", self.space())
        what = self.rng.choice(({"dataset": self.reference("datasets"), "partition": self._day()}, {"run": run}))
        return {**what, "dry_run": self.rng.random() < 0.4}

    def _a_newstop(self) -> Document:
        return {"reason": "repair", **self._a_start()}

    def _a_start(self) -> Document:
        return {"dry_run": self.rng.random() < 0.5, **self.rng.choice(({}, {"tag": "team"}))}

    def _a_bulk(self) -> Document:
        which = self.rng.choice(({"names": [self.reference("schedules")]}, {"workflow": self.reference("workflows")},
                                 {"all": True}, {"tag": "team"}))  # fmt: skip
        return {"action": self.rng.choice(("enable", "disable", "pause", "resume")), **which}

    def _a_dryrun(self) -> Document:
        given = self._trigger()
        if given["type"] == "partition":
            given["partition"] = self._day()
        given.pop("expression", None)
        return {"events": [{name: value for name, value in given.items() if name != "pattern"}]}

    def _a_redrive(self) -> Document:
        return {
            "schedule": f"{self.own.app}.{self.word('schedules', self.own)}"
            if not self.strays
            else self.reference("schedules")
        }

    def _a_glance(self) -> Document:
        space = self.space()
        word = self.word("schedules", space)
        return {"schedules": [f"{space.app}.{word}" if space == self.own else f"{space.name}.{space.app}.{word}"]}

    def _a_claim(self) -> Document:
        return {"worker": "ann", "wait": 0, "capacity": self.rng.choice((1, 10))}

    def _a_report(self) -> Document:
        return {"worker": "ann", "state": self.rng.choice(("succeeded", "failed")), "output": self.own.word("aside")}

    def _a_rerun(self) -> Document:
        return {"from": self.own.word("first")}


def bodies_without_a_maker() -> set[str]:
    """The kinds of bodies that are drawn from the examples of the document."""
    kinds = {
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for _, _, operation in OPERATIONS
        if "requestBody" in operation
    }
    return {kind for kind in kinds if not hasattr(Draw, f"_a_{kind.lower()}")}


def paths() -> Mapping[str, Any]:
    return DOCUMENT["paths"]
