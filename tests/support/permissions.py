"""Checks every call to AWS of a Lambda's code in a test against that Lambda's role (`roles.py`).

The stack of calls shows which Lambda is active. It is that of the outermost function which only some Lambdas enter.
Such a function is a route of the API, or one that a handler calls. Calls of the tables in memory are requests to
DynamoDB. For fakes of other services (hints, objects, targets) the real adapter produces the request that it would
send. For real clients on resources that exist only in the test, only the action is compared. A call that is not allowed
fails the test, even if the code under test catches the error. Tests that are marked `long` are left out.

Lambdas of the local cloud run in other processes: there the cloud itself refuses (`infra/local/refusals.py`).
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from botocore.client import BaseClient

from chalicelib import handlers
from chalicelib.aws.tables import dynamo
from infra.local.permissions import Need, Policy, needs
from sluice.operations import copies
from sluice.testing.memory_tables import MemoryTables
from tests.support import requests_of_ports, roles
from tests.support.state_machines import StateMachines

CHALICELIB = Path(handlers.__file__).parent
TABLE_CALLS = {
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "batch_write_item": "BatchWriteItem",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "transact_write_items": "TransactWriteItems",
    "query": "Query",
}
Lambdas = frozenset[str]
ANYBODY: Lambdas = frozenset(roles.LAMBDAS.values())
# Where an invocation begins without a handler: `World` calls these, as `dispatch_together` does.
OF_CHECK = (
    "system.dispatch.dispatch",
    "deliveries.prepare.prepare",
    "deliveries.send.lease",
    "deliveries.send.send",
)
TESTS = Path(__file__).parents[1]
# Files of tests whose functions are called between a flow and a port.
AROUND_PORTS = (
    *(
        "aws_rules.py",
        "crash.py",
        "crossings.py",
        "deliveries_crossed.py",
        "fakes.py",
        "ledgers.py",
        "permissions.py",
    ),
    *("random_world.py", "slow_calls.py", "state_machines.py", "scheduler.py", "unreliable_tables.py", "weather.py"),
)
EACH = "run_each"
# Engines: called with the target role of a namespace alone (`tests/infra/test_target_role.py`).
OF_TARGET_ROLES = frozenset({"batch"})
# Whole tables are read and written with an administrator's rights, by no Lambda.
OF_ADMINISTRATOR = copies.__file__
OF_METER = str(TESTS.parent / "benchmarks" / "cost" / "meter.py")  # its own reads are none of a Lambda
# Lambdas by the functions of `handlers.py`, where the names differ.
HANDLERS = {
    "hints": "check",
    **dict.fromkeys(("_read_custom", "_post_custom", "_match_alarm"), "custom"),
    "_keep_ends": "lake",
}


class Watch:
    """The needs of each Lambda, and those that its role does not allow."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies
        self._calls: set[tuple[Any, ...]] = set()
        self.needed: dict[tuple[str, Need], None] = {}
        self.refused: list[str] = []

    def is_known(self, *call: Any) -> bool:
        """Whether such a call of these Lambdas was checked before."""
        if call in self._calls:
            return True
        self._calls.add(call)
        return False

    def take(self, lambdas: Lambdas, need: Need) -> None:
        for name in lambdas:
            if (name, need) not in self.needed:
                self.needed[name, need] = None
                if not self._policies[name].allows(need):
                    self.refused.append(f"{name} may not {need}")

    def take_of_any(self, lambdas: Lambdas, need: Need, is_of_stack: bool = True) -> None:
        """At least one of these Lambdas must be allowed the action. The resource exists only in the test."""
        roles_of = [self._policies[name] for name in lambdas]
        if not any(role.allows(need) if is_of_stack else need.action in role.actions for role in roles_of):
            self.refused.append(f"{' and '.join(sorted(lambdas))} may not {need}")

    def expect_all_allowed(self) -> None:
        reported = list(dict.fromkeys(self.refused))
        assert not reported, "IAM would refuse what was called (infra/policies):\n" + "\n".join(reported)

    def of(self, name: str) -> list[Need]:
        return [need for who, need in self.needed if who == name]


_watch: Watch | None = None
_acting: Lambdas | None = None


@contextmanager
def watched(policies: Mapping[str, Policy] | None = None) -> Iterator[Watch]:
    """Watch all calls in this process until the end of the block, in place of the present watch."""
    global _watch
    before, _watch = _watch, Watch(roles.policies() if policies is None else policies)
    try:
        yield _watch
    finally:
        _watch = before


def reported(asked: Iterable[Need]) -> None:
    """Tell the watch about requests of the active Lambdas that pass neither tables, fakes nor clients."""
    if _watch is not None and (lambdas := at_work()):
        for need in asked:
            _watch.take(lambdas, need)


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Calls in this block count as those of this Lambda, independent of the stack."""
    global _acting
    before, _acting = _acting, frozenset({name})
    try:
        yield
    finally:
        _acting = before


@pytest.fixture(scope="session", autouse=True)
def _watched_calls() -> None:
    """Check each call before it is made; installed once for the session. No call is made in a thread of its own, whose
    stack does not show the Lambda."""
    _install()
    dynamo.AT_ONCE = 1


@pytest.fixture(autouse=True)
def calls_are_permitted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test in which a Lambda calls what its role does not allow."""
    if request.node.get_closest_marker("long"):
        yield
        return
    with watched() as watch:
        yield
    watch.expect_all_allowed()


def at_work() -> Lambdas | None:
    """The Lambdas whose code is on the stack: several if they share the entered function, None if there is none."""
    if _acting is not None:
        return _acting
    found: Lambdas | None = None
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename == OF_ADMINISTRATOR or (code.co_filename == OF_METER and code.co_name == "_stored"):
            return None
        part = _parts.get(id(code))
        if part is None:
            part = _parts[id(code)] = _part_of(code)
        if part[1] is not None:
            found = part[1]
        elif part[2]:
            return found
        frame = frame.f_back
    return found


# By the identity of a function's code, which is kept so that no other one gets the identity: the Lambdas that enter it,
# and whether it plays a Lambda.
_parts: dict[int, tuple[CodeType, Lambdas | None, bool]] = {}


def _part_of(code: CodeType) -> tuple[CodeType, Lambdas | None, bool]:
    return code, _entries().get(id(code)), _plays_lambda(code.co_filename)


@cache
def _plays_lambda(file: str) -> bool:
    """Whether functions of a file begin invocations, or read tables for a test. If two invocations cross, one is called
    inside the other.
    """
    path = Path(file)
    return TESTS in path.parents and path.name not in AROUND_PORTS


@cache
def _install() -> None:
    for name, operation in TABLE_CALLS.items():
        setattr(MemoryTables, name, _told_of_tables(getattr(MemoryTables, name), operation))
    for name in ("start_execution", "describe_execution", "stop_execution"):
        setattr(StateMachines, name, _told_of_states(getattr(StateMachines, name), name))
    for stand_in, name in requests_of_ports.stand_ins():
        setattr(stand_in, name, _told_of_ports(getattr(stand_in, name), name))
    BaseClient._make_api_call = _told_of_clients(BaseClient._make_api_call)


def _told_of_tables(call: Callable[..., Any], operation: str) -> Callable[..., Any]:
    def reported(tables: MemoryTables, **parameters: Any) -> Any:
        if (
            _watch is not None
            and (lambdas := at_work())
            and not _watch.is_known(lambdas, *_sketch(operation, parameters))
        ):
            for need in needs("dynamodb", operation, parameters, roles.PLACE):
                _watch.take(lambdas, need)
        return call(tables, **parameters)

    return reported


def _told_of_states(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    operation = "".join(part.capitalize() for part in name.split("_"))

    def told_of(machines: StateMachines, **parameters: Any) -> Any:
        reported(needs("stepfunctions", operation, parameters, roles.PLACE))
        return call(machines, **parameters)

    return told_of


def _told_of_ports(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def reported(stand_in: Any, *args: Any, **named: Any) -> Any:
        if _watch is not None and (lambdas := at_work()):
            sketch = requests_of_ports.sketch(stand_in, name, args)
            for need in () if _watch.is_known(lambdas, *sketch) else requests_of_ports.needs_of(stand_in, name, args):
                _watch.take(lambdas, need)
        return call(stand_in, *args, **named)

    return reported


def _told_of_clients(call: Callable[..., Any]) -> Callable[..., Any]:
    def reported(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        if _watch is not None and (lambdas := at_work() or _anybody()):
            service = client.meta.service_model.service_name
            for each in () if service in OF_TARGET_ROLES else needs(service, operation, parameters, roles.PLACE):
                need = roles.of_stack(each)
                if need is None or lambdas == ANYBODY:
                    _watch.take_of_any(lambdas, need or each, need is not None)
                else:
                    _watch.take(lambdas, need)
        return call(client, operation, parameters)

    return reported


def _anybody() -> Lambdas | None:
    """All Lambdas, if a test has called an adapter directly: at least one of them must be allowed the call."""
    adapters = str(CHALICELIB / "aws")
    frame: Any = sys._getframe(2)
    found: Lambdas | None = None
    while frame is not None:
        if frame.f_code.co_filename == OF_ADMINISTRATOR:
            return None
        if frame.f_code.co_filename.startswith(adapters):
            found = ANYBODY
        frame = frame.f_back
    return found


def _sketch(operation: str, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
    """The parts of a request to DynamoDB that `needs` depends on: requests with the same sketch need the same."""
    if operation == "TransactWriteItems":
        return operation, *((kind, item[kind]["TableName"]) for item in parameters["TransactItems"] for kind in item)
    tables = (parameters["TableName"],) if "TableName" in parameters else tuple(parameters["RequestItems"])
    return operation, *tables, parameters.get("IndexName")


@cache
def _entries() -> dict[int, Lambdas]:
    """The Lambdas that enter a function, by the identity of its code. The functions are handlers, the flow functions
    that they call, routes of the API, and the functions that these call.
    """
    entered: dict[Any, set[str]] = {}
    handling = ast.parse((CHALICELIB / "handlers.py").read_text())
    for function in (node for node in handling.body if isinstance(node, ast.FunctionDef)):
        name = HANDLERS.get(function.name, function.name)
        if name in roles.LAMBDAS.values():
            entered.setdefault(getattr(handlers, function.name), set()).add(name)
            for called in _called(function):
                entered.setdefault(called, set()).add(name)
    routes: set[CodeType] = set()
    for path in (CHALICELIB / "web").rglob("*.py"):
        name = ".".join(path.relative_to(CHALICELIB.parent).with_suffix("").parts)
        routes |= _codes_in(importlib.import_module(name.removesuffix(".__init__")))
        for called in _called(ast.parse(path.read_text())):
            entered.setdefault(called, set()).add("api")
    for dotted in OF_CHECK:
        module, _, name = dotted.rpartition(".")
        entered.setdefault(getattr(importlib.import_module(f"chalicelib.flow.{module}"), name), set()).add("check")
    inside = {id(code): frozenset({"api"}) for code in routes}
    return inside | {id(function.__code__): frozenset(names) for function, names in entered.items()}


def _codes_in(module: Any) -> set[CodeType]:
    """The code of all functions of a module, nested ones included."""
    own = {found.__code__ for found in vars(module).values() if isinstance(found, FunctionType)}
    left, seen = [code for code in own if code.co_filename == module.__file__], set[CodeType]()
    while left:
        code = left.pop()
        seen.add(code)
        left += [each for each in code.co_consts if isinstance(each, CodeType) and each not in seen]
    return seen


def _called(tree: ast.AST) -> Iterator[Any]:
    """The functions of the flow that a piece of code imports, or calls by the name of their module."""
    modules: dict[str, Any] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not f"{node.module}.".startswith("chalicelib.flow."):
            continue
        for each in node.names:
            if each.name == EACH:
                continue  # it calls the function that it gets, for every Lambda
            found = getattr(importlib.import_module(str(node.module)), each.name, None)
            if found is None or isinstance(found, ModuleType):
                modules[each.asname or each.name] = importlib.import_module(f"{node.module}.{each.name}")
            elif hasattr(found, "__code__"):
                yield found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            found = getattr(modules[node.value.id], node.attr)
            if hasattr(found, "__code__"):
                yield found
