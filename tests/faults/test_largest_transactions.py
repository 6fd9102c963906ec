"""The largest documents that validation allows stay within DynamoDB's limits in every transaction.

A transaction has at most 100 writes and 4 MB, an item 400 KB, and an expression 4 KB. Every place in `chalicelib` and
`sluice/operations` that commits a plan of variable length is listed in `LARGEST`, with the case below that plays its
largest input. A new one fails the test until it has an entry. The requests are measured as they would be sent.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chalicelib.aws.tables.audited import AuditedLedger
from chalicelib.core.audit.author import Author
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.workflow import MAX_DATASETS
from chalicelib.core.limits.permits import MOST_RATES
from chalicelib.core.targets.answers import Never
from chalicelib.flow.dags import actions as dags
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy, uploaded
from chalicelib.flow.fires import emit
from tests.acceptance.words import absent, any_of, concurrency, event, fresh, on, partition, rate, time
from tests.flow.stored import send
from tests.support import backfills
from tests.support import dags as graphs
from tests.support.fakes import APPLICATION
from tests.support.schedules import at, partitions
from tests.support.world import EMR, SQS, World, day, flights

ROOT = Path(__file__).parents[2]
MAX_WRITES, MAX_BYTES, MAX_ITEM, MAX_EXPRESSION = 100, 4_000_000, 400_000, 4_096
TURNS = "flow/deploy/turns.py"  # hands plans on to another ledger
APP = "demo.flights"
LONG = "a" * 50  # names may have 60 characters
FOREIGN = [f"n{number:02d}" for number in range(44)]


# -- the places that commit --------------------------------------------------------------------------------------------


def sites() -> Iterator[str]:
    """The functions that commit a plan whose length is not that of a list in the call, as ``path::function``."""
    for path in [*sorted((ROOT / "chalicelib").rglob("*.py")), *sorted((ROOT / "sluice/operations").rglob("*.py"))]:
        name = path.relative_to(ROOT).as_posix().removeprefix("chalicelib/")
        if not name.startswith("aws/") and name != TURNS:
            for function, plan in _commits(ast.parse(path.read_text()), ""):
                if not isinstance(plan, ast.List) or any(isinstance(part, ast.Starred) for part in plan.elts):
                    yield f"{name}::{function}"


def _commits(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.FunctionDef):
        function = node.name
    call = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(call, ast.Attribute) and call.attr == "commit":
        yield function, node.args[0]
    for child in ast.iter_child_nodes(node):
        yield from _commits(child, function)


# -- the measure -------------------------------------------------------------------------------------------------------


@dataclass
class Sizes:
    """The largest requests of each place: writes, bytes, and the length of an expression."""

    writes: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    item: int = 0
    expression: int = 0

    def add(self, requests: Sequence[dict[str, Any]]) -> None:
        site = _site()
        size = 0
        for request in requests:
            own = len(json.dumps({name: part for name, part in request.items() if name != "TableName"}))
            size += own
            self.item = max(self.item, own)
            for name in ("UpdateExpression", "ConditionExpression"):
                self.expression = max(self.expression, len(request.get(name, "")))
        self.writes[site] = max(self.writes.get(site, 0), len(requests))
        self.bytes[site] = max(self.bytes.get(site, 0), size)


def _site() -> str:
    """The function of `chalicelib` that commits now."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if "/chalicelib/" in path and "/chalicelib/aws/" not in path and not path.endswith(TURNS):
            return f"{path.partition('/chalicelib/')[2]}::{frame.f_code.co_name}"
        frame = frame.f_back
    return "a test"


class Measured:
    """A client of DynamoDB that measures what is written."""

    def __init__(self, inner: Any, sizes: Sizes) -> None:
        self._inner, self._sizes = inner, sizes

    def transact_write_items(self, **arguments: Any) -> Any:
        self._sizes.add([part for item in arguments["TransactItems"] for part in item.values()])
        return self._inner.transact_write_items(**arguments)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        if name not in ("put_item", "update_item", "delete_item"):
            return call

        def measured(**arguments: Any) -> Any:
            self._sizes.add([arguments])
            return call(**arguments)

        return measured


def measured(world: World) -> Sizes:
    """Measure what a world writes, with the audit records of its requests."""
    sizes = Sizes()
    world.dynamo._client = Measured(world.dynamo._client, sizes)
    return sizes


def audited(world: World) -> None:
    """Let all that follows be done by a request of a user, whose audit records are part of its transactions."""
    author = Author(None, "put_schedule")
    ledger = AuditedLedger(world.ports.ledger, lambda: author, world.clock, 365)
    world.ports = world.with_ports(ledger=ledger, author=lambda: author)


# -- the largest documents ---------------------------------------------------------------------------------------------


def leaves(prefix: str, count: int = 45) -> list[dict[str, Any]]:
    return [event(f"{prefix}-{LONG}-{number:02d}"[:60]) for number in range(count)]


def wide(prefix: str, **fields: Any) -> dict[str, Any]:
    """A schedule with as many index rows as are allowed."""
    some = [rate(7, "hour"), rate(9, "day")]
    return on(any_of(*leaves(prefix)), "clean", *some, ttl="30d", **fields)


def big(size: int = 85_000) -> dict[str, Any]:
    return {"properties": {"text": "x" * size}}


def plays_puts() -> Sizes:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({}))
    sizes = measured(world)
    audited(world)
    for prefix in "abc":
        world.put("wide", wide(prefix, **big()))
    world.put("wide", wide("c", **big()) | {"constraints": []})
    world.put("wide", wide("d", **big(), on_update="carry") | {"description": "other"})
    for act in (world.disable, world.enable, world.pause, world.resume):
        act("wide")
    world.pause("wide", "backlog")
    world.resume("wide")
    world.pause("wide", "drain")
    world.resume("wide")
    world.delete("wide")
    constraints = [fresh(f"{APP}.clean", "1d") | {"workflows": [f"{APP}.{name}" for name in ("clean", "join")]}]
    world.put("waking", on(time("0 5 * * *"), "clean", *constraints, ttl="30d", pause_after_failures=3))
    return sizes


def plays_deployments() -> Sizes:
    """Many schedules in one transaction, small ones and the largest ones, in a request and by an upload."""
    world = World(wake_shards=1, history_shards=1)
    many = {f"s{number:03d}": at("0 5 * * *", "notify") for number in range(130)}
    wides = {f"w{number}": wide(f"{number}", **big()) for number in range(4)}
    large = {f"l{number:02d}": at("0 5 * * *", "notify") | big(99_000) for number in range(30)}
    store.put(world.ports, "namespace", "demo", {}, "tester")
    audited(world)
    sizes = measured(world)
    for prefix in ("", "x"):
        more = {name: {**document, "description": prefix} for name, document in {**many, **large}.items()}
        changed = {name: wide(f"{prefix}{name}", **big()) for name in wides}
        document = flights({**more, **changed})
        sent = json.dumps(document).encode()
        world.payloads.uploads[APP, f"u{prefix}"] = sent
        plan = deploy.checked(world.ports, "demo", "flights", App.model_validate(document), None)
        uploaded.begin(world.ports, plan, f"u{prefix}", sent, "tester")
        uploaded.advance(world.ports, APP, f"u{prefix}")
    send(world, flights({}))
    return sizes


def plays_dags() -> Sizes:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({}))
    sizes = measured(world)
    audited(world)
    nodes = {f"n{number:02d}": {"workflow": f"{APP}.clean"} for number in range(100)}
    edges = [{"from": "n00", "to": f"n{number:02d}"} for number in range(1, 41)]
    edges += [{"from": f"n{number:02d}", "to": "n99"} for number in range(50, 94)]
    for prefix in "abc":
        dag = {"nodes": nodes, "edges": edges, "trigger": any_of(*leaves(prefix, 45)), "enabled": True}
        dag["description"] = prefix
        dags.put(world.ports, f"{APP}.graph", NewDag.model_validate(dag), "tester")
    world.post(leaves("c")[0]["event"])
    world.settle()
    world.finish("FAILED")
    world.settle()
    dags.delete(world.ports, f"{APP}.graph", "tester")
    return sizes


def plays_elements() -> Sizes:
    """A node with more elements than one transaction begins, of a list as large as a result may be."""
    world = World(wake_shards=1, history_shards=1)
    load = {"workflow": "w_load", "each": {"of": "scan"}}
    world.deploy(graphs.app(graphs.dag("scan -> load", nodes={"load": load})))
    sizes = measured(world)
    world.upload(day(1))
    world.settle()
    graphs.ends(world, "scan", result=["v" * 220] * 44)
    return sizes


def plays_claims() -> Sizes:
    """A claim that relies on the grants of other namespaces, with all rates, groups, a pool, a policy and a slot."""
    limits = ((APPLICATION, 100),)
    world = World(wake_shards=1, history_shards=1, authorization="enforce", emr_run_limits=limits)
    for space in (*FOREIGN, "run", "pool", "pace"):
        store.put(world.ports, "namespace", space, {}, "tester")
        store.put(world.ports, "app", f"{space}.a", {}, "tester")
        store.put(world.ports, "workflow", f"{space}.a.w", {"target": EMR}, "tester")
        grant = {"to": "demo", "follow": ["*"], "run": ["*"], "pools": ["*"], "policies": ["*"]}
        world.grant(space, {"grants": [grant]})
    store.put(world.ports, "pool", "pool.spark", {"size": 1000, "unit": "slots"}, "tester")
    store.put(world.ports, "policy", "pace.slow", {"max_events": 100, "interval": "1s"}, "tester")
    world.deploy(flights({}))
    sizes = measured(world)
    rates = {f"rate{number}": [rate(400 - number, "hour")] for number in range(MOST_RATES)}
    for name, constraints in rates.items():
        world.put(name, on(time("0 5 1 1 *"), "run.a.w", *constraints), checked=True)
    names = [f"{space}.a.w" for space in FOREIGN]
    groups = [concurrency(5, group=f"g{number:02d}") for number in range(17)]
    upstreams = [fresh("x", "1d", "abort") | {"workflows": names[start : start + 20]} for start in (0, 20, 40)]
    upstreams[-1]["on_unmet"] = "abort"
    document = on(time("* * * * *"), "run.a.w", *groups, *upstreams, pool="pool.spark", policy="pace.slow", slots=1)
    world.put("claims", document, checked=True)
    for number, name in enumerate(names):
        world.put(f"up{number}", on(time("* * * * *"), name), checked=True)
    for _ in range(3):
        world.pass_by("1m")
        world.finish()
        world.settle()
    assert world.runs("claims"), world.records("claims")
    return sizes


def plays_backfills() -> Sizes:
    """A hundred entries at a time, whose jobs have the largest properties."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions(dataset="weather")}))
    for number in range(100):
        world.upload(day(number, "weather"))
    world.settle()
    sizes = measured(world)
    values = [{"year": "2013", "month": "1", "day": str(number)} for number in range(100)]
    backfills.begin(world, "daily", partitions={"values": values}, concurrency=100, **big(99_000))
    world.settle()
    world.pass_by("2m")
    return sizes


def plays_timers() -> Sizes:
    """After an outage, each leaf of each timer has a record of skipped fires."""
    world = World(wake_shards=1, history_shards=1)
    leaf = [time(f"{minute} * * * *") for minute in range(45)]
    world.deploy(flights({f"s{number}": on(any_of(*leaf), "notify", catch_up="none") for number in range(30)}))
    sizes = measured(world)
    world.clock.pass_by("3d")
    world.tick()
    return sizes


def plays_deliveries() -> Sizes:
    """Many messages at one instant, with and without a policy, plain and gathered, some with the largest properties."""
    world = World(wake_shards=1, history_shards=1)
    fires = {f"f{number:03d}": at("1 12 * * *", "notify") for number in range(130)}
    large = {f"l{number:02d}": at("2 12 * * *", "notify", **big(80_000)) for number in range(60)}
    paced = {f"p{number:03d}": at("3 12 * * *", "notify", policy="calm") for number in range(130)}
    gathered = {f"g{number:02d}": on(partition("weather"), "notify", policy="calm") for number in range(60)}
    document = flights({**fires, **large, **paced, **gathered}) | {
        "policies": {"calm": {"max_events": 20, "interval": "1s"}}
    }
    world.deploy(document)
    sizes = measured(world)
    world.upload(day(1, "weather"))
    world.pass_by("1m")
    world.pass_by("1m")
    world.pass_by("3m")
    return sizes


def plays_bundles() -> Sizes:
    """A queue refuses all events of a fire with large data. Another fire is divided, and one has the most bundles."""
    world = World(wake_shards=1, history_shards=1)
    refused = at("1 12 * * *", "notify", spread={"count": 120}, **big(80_000))
    divided = at("2 12 * * *", "split", spread={"count": 120})
    many = at("3 12 * * *", "notify", spread={"count": 100_000})
    small = at("1 12 * * *", "notify", spread={"count": 120})
    document = flights({"refused": refused, "small": small, "divided": divided, "many": many}, split={"target": SQS})
    world.deploy(document)
    sizes = measured(world)
    world.targets.queue.down = Never("no such queue")
    world.pass_by("65s")
    world.targets.queue.down = None
    store.put(world.ports, "workflow", f"{APP}.split", {"target": SQS, "delivery": {"records": "each"}}, "tester")
    world.pass_by("1m")
    emit.emit_due(world.ports)
    return sizes


def plays_notices() -> Sizes:
    """Each of many schedules of one workflow has targets of its own for its notices, and fails."""
    world = World(wake_shards=1, history_shards=1)

    def mine(name: str) -> list[dict[str, Any]]:
        urls = [f"https://{name}-{number}.example/{LONG}" for number in range(5)]
        return [{"on": ["aborted", "missed_start", "missed_end"], "to": {"type": "http", "url": url}} for url in urls]

    limit = concurrency(1, on_unmet="abort")
    each = {f"s{number}": on(partition(), "clean", limit, notify=mine(f"s{number}")) for number in range(40)}
    late = on(partition(), "clean", limit, notify=mine("late"), deadline={"start_within": "1m", "end_within": "2m"})
    world.deploy(flights({"first": partitions(), "late": late, **each}, clean={"target": EMR, "notify": mine("clean")}))
    sizes = measured(world)
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    world.pass_by("6m")
    return sizes


def plays_queues() -> Sizes:
    """Jobs that hold and wait for all limits are updated, woken, disabled, dropped. Their runs register partitions."""
    world = World(wake_shards=1, history_shards=1)
    groups = [concurrency(1, group=f"g{number:02d}") for number in range(18)]
    jobs = on(event("go"), "clean", *groups, coalesce=False, pool="demo.spark", notify=[])
    document = flights({"jobs": jobs, "last": on(event("go"), "clean", *groups, concurrency(1))}) | {
        "pools": {"spark": {"size": 3, "unit": "slots"}}
    }
    products = {f"{LONG}-{number:02d}": {"bucket": "lake", "prefix": f"p{number:02d}/", "keys": ["day"]}
                for number in range(MAX_DATASETS)}  # fmt: skip
    document["datasets"] |= products
    registers = [{"dataset": name, "register": "on_success"} for name in products]
    document["workflows"]["clean"] = {"target": EMR, "produces": registers}
    for schedule in document["schedules"].values():
        schedule["by"] = ["day"]
    world.deploy(document)
    sizes = measured(world)
    for _ in range(40):
        world.post("go", day="1")
    world.settle()
    world.finish("FAILED")
    world.settle()
    world.pause("jobs")
    world.pass_by("1m")
    world.resume("jobs")
    world.pass_by("1m")
    world.post("go", day="1")
    world.settle()
    assert [run for run in world.runs("jobs") if run.ended_at is None]
    for number in range(8):  # a run that is active all the time is counted in the groups of each version
        groups = [concurrency(1, group=f"other{number}-{part:02d}") for part in range(20)]
        changed = {"workflow": f"{APP}.clean", "constraints": groups, "pool": None, "on_update": "drop"}
        world.put("jobs", jobs | changed)
    world.finish()
    world.settle()
    assert not [run for run in world.runs("jobs") if run.ended_at is None]
    assert [len(run.registered) for run in world.runs("jobs") if run.registered][:1] == [MAX_DATASETS]
    document["schedules"]["jobs"] = {**jobs, "priority": 9, "on_update": "carry"}
    world.deploy(document)
    world.pass_by("1m")
    world.disable("jobs")
    world.pass_by("1m")
    return sizes


def plays_events() -> Sizes:
    """One event that many leaves await and many count from."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({}))
    late = [absent(event("go"), within=f"{number + 1}h") for number in range(44)]
    world.put("events", on(any_of(event("go"), *late), f"{APP}.notify", notify=[]))
    sizes = measured(world)
    for _ in range(3):
        world.post("go")
        world.settle()
    return sizes


def plays_runs() -> Sizes:
    """Runs with the properties of the largest workflow, schedule and request: they fail, and their hints are lost."""
    world = World(wake_shards=1, history_shards=1)
    half = {"w" * 20: "w" * 99_000}, {"s" * 20: "s" * 99_000}
    daily = at("0 5 * * *", properties=half[1])
    world.deploy(flights({"daily": daily}, clean={"target": EMR, "properties": half[0], "retries": {"attempts": 2}}))
    sizes = measured(world)
    for number in range(30):
        world.run_now("daily", f"r{number}", **{"r" * 20: "r" * 99_000})
    world.settle()
    world.hints.lose = True
    world.clock.pass_by("2h")
    world.tick()
    world.hints.lose = False
    world.finish("FAILED")
    world.settle()
    world.pass_by("1m")
    return sizes


Case = Callable[[], Sizes]
CASES: dict[str, Case] = {
    case.__name__.removeprefix("plays_"): case
    for case in (
        plays_puts,
        plays_deployments,
        plays_dags,
        plays_elements,
        plays_claims,
        plays_backfills,
        plays_timers,
        plays_bundles,
        plays_deliveries,
        plays_notices,
        plays_queues,
        plays_events,
        plays_runs,
    )
}
# The case that plays the largest input of a place, and how many writes this has at least.
LARGEST: dict[str, tuple[str, int]] = {
    "flow/backfills/backfill.py::_step": ("backfills", 25),
    "flow/dags/actions.py::_put": ("dags", 90),
    "flow/definitions/store.py::put": ("deployments", 4),
    "flow/each.py::committed": ("timers", 20),
    "flow/fires/emit.py::_commit": ("timers", 90),
    "flow/ingest/apply.py::_apply": ("events", 45),
    "flow/jobs/check.py::_claim": ("claims", 90),
    "flow/deliveries/books.py::_settle_inside": ("bundles", 50),
    "flow/deliveries/bundles.py::divide": ("bundles", 90),
    "flow/deliveries/books.py::_commit": ("deliveries", 90),
    "flow/deliveries/join.py::_commit": ("deliveries", 90),
    "flow/limits/counting.py::settle": ("queues", 20),
    "flow/notices/notices.py::_take": ("notices", 90),
    "flow/notices/notices.py::close_window": ("notices", 6),
    "flow/runs/complete.py::advance_run": ("queues", 80),
    "flow/runs/element_ends.py::write": ("elements", 41),
    "flow/schedules/actions.py::delete": ("deployments", 45),
    "flow/schedules/actions.py::disable": ("puts", 45),
    "flow/schedules/actions.py::enable": ("puts", 45),
    "flow/schedules/actions.py::put": ("puts", 95),
    "flow/schedules/pauses.py::pause": ("puts", 45),
    "flow/schedules/pauses.py::resume": ("puts", 45),
    "flow/schedules/together.py::_commit": ("deployments", 95),
}
# Places whose plans no document lengthens, and those that a longer plan above contains: why they are short.
SHORT: dict[str, str] = {
    "flow/backfills/reprocess.py::_step": "one step, and its backfill",
    "flow/definitions/store.py::remove": "one document; of a namespace three others, of a dataset its prefix and watch",
    "flow/fires/zone_rules.py::_prepare_again": "as many fires of one timer as fit; others stay",
    "flow/ingest/fires.py::_count": "one fire, and its record",
    "flow/ingest/snapshots.py::register": "one snapshot, and its size",
    "flow/fire_events.py::take_out": "one event, its bundle, and its fire",
    "flow/jobs/actions.py::approve": "one job that moves",
    "flow/deliveries/bundles.py::_without": "one bundle, and one record",
    "flow/deliveries/prepare.py::_detached": "as many jobs as fit, with four writes each",
    "flow/jobs/check.py::_expire_waiting": "two jobs, and a waiter",
    "flow/deliveries/books.py::_book": "one delivery, and what its job holds",
    "flow/deliveries/books.py::_not_taken": "one delivery, its letter and notice, and what its job holds",
    "flow/jobs/dag_cancel.py::_close_node": "one node: its tombstone, its record, and what its job holds",
    "flow/jobs/drop.py::_close": "one job, and what it holds",
    "flow/check_result.py::committed": "one job, its notice, and what it holds",
    "flow/notices/deadlines.py::judge_deadline": "one watch, and two notices",
    "flow/notices/freshness.py::_tell": "one watch, and a notice for each of 50 subscriptions",
    "flow/requests.py::once": "one job, and the state that it expects",
    "flow/runs/complete.py::announce": "one run, and its notice",
    "flow/runs/complete.py::_hold_failing": "a pause, as of a user",
    "flow/runs/launch.py::_cancel_found": "one run, and its waiter",
    "flow/runs/launch.py::_answered": "one run, and its waiter",
    "flow/runs/launch.py::_leave_queue": "one run, and its waiter",
    "flow/runs/launch.py::_offer": "one run, its offer, and the paces of its target",
    "flow/runs/launch.py::_prepare": "one run, and the paces of its target",
    "flow/runs/launch.py::_queue": "one run, its waiter, and the paces of its target",
    "flow/runs/launch.py::_start": "one run, and the paces of its target",
    "flow/runs/workers.py::_lease": "one run, its offer, and what a claim expects of grants",
    "flow/schedules/lifetime.py::_complete": "the index rows of one schedule are deleted, as by a user",
    "flow/schedules/lifetime.py::_delete": "the index rows of one schedule are deleted, as by a user",
    "flow/schedules/messages.py::delete": "a message has no index rows",
    "flow/schedules/messages.py::put": "a message has no index rows",
    "flow/schedules/pauses.py::skip": "one state",
    "flow/schedules/stops.py::_committed": "fifty states, and a copy of twenty stops",
    "flow/schedules/stops.py::_write": "sixteen copies of twenty stops",
    "flow/wake.py::_wake_queued": "one job, its waiter, and what it holds",
    "sluice/operations/archive/give_up.py::_release": "the permits of one run",
    "sluice/operations/archive/sharing.py::_count": "one run, and the limits that it holds",
    "sluice/operations/repair/repair.py::write": "one or two rows",
}


def test_every_place_that_commits_has_a_largest_input() -> None:
    assert sorted(set(sites())) == sorted([*LARGEST, *SHORT])
    assert {case for case, _ in LARGEST.values()} <= CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_the_largest_documents_fit_into_each_transaction(name: str) -> None:
    sizes = CASES[name]()
    least = {site: count for site, (case, count) in LARGEST.items() if case == name}
    assert {site: sizes.writes.get(site, 0) for site, count in least.items() if sizes.writes.get(site, 0) < count} == {}
    assert {site: count for site, count in sizes.writes.items() if count > MAX_WRITES} == {}
    assert {site: count for site, count in sizes.bytes.items() if count > MAX_BYTES} == {}
    assert sizes.item <= MAX_ITEM
    assert sizes.expression <= MAX_EXPRESSION
