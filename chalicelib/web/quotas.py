"""The check of a request against the quotas of its namespace (O9).

A process remembers what a namespace has for `REMEMBERED` ms, and counts what it adds itself. So a namespace may exceed
a quota by what other processes add within that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from chalice.app import Request

from chalicelib.core.dags.compile import compiled
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires.upcoming import counted
from chalicelib.core.ids import dag_start
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.quotas import document
from chalicelib.core.quotas.document import Quotas
from chalicelib.core.quotas.rate import Rates
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.definitions.quotas import quotas_of, usage_of
from chalicelib.flow.lookup import schedules_of
from chalicelib.flow.views.lists import count
from chalicelib.web import access

if TYPE_CHECKING:
    from chalicelib.core.definitions.app import App
    from chalicelib.core.definitions.dag import Dag
    from chalicelib.core.definitions.schedule import Schedule
    from chalicelib.core.quotas.document import Usage

REMEMBERED: Millis = 30 * SECOND
MAX_KNOWN = 1_000  # namespaces that a process remembers

T = TypeVar("T")


@dataclass
class Memory:
    """What one process knows of the namespaces: their quotas, what they have, and the requests that they may send."""

    rates: Rates
    quotas: dict[str, tuple[Instant, Quotas]] = field(default_factory=dict)
    usages: dict[str, tuple[Instant, Usage]] = field(default_factory=dict)
    waiting: dict[str, tuple[Instant, int]] = field(default_factory=dict)


@cache
def memory() -> Memory:
    return Memory(Rates())


def check_rate(request: Request, namespace: str) -> None:
    """Raise ``throttled`` if a namespace sends more requests than its quota lets this process answer."""
    rate = _quotas(namespace, read=request.method != "GET").requests_per_second
    if rate is not None and not memory().rates.take(namespace, rate, access.installed().clock.now()):
        hint = f"send fewer requests, or ask an administrator of the installation: sluice quotas {namespace}"
        message = f"expected at most {rate:g} requests a second to namespace {namespace} on average, got more"
        raise SluiceError("throttled", message, None, hint)


def check_schedule(name: str, schedule: Schedule) -> None:
    """Raise ``over_quota`` for a schedule, by its full name, with which its namespace exceeds a quota."""
    state = access.installed().rows.get(ScheduleState, name)
    new = 0 if state is not None and state.exists else 1
    _check(_namespace(name), new, {name: counted(schedule) or 0}, new)


def check_document(kind: Any, name: str) -> None:
    """Raise ``over_quota`` for a new document with which its namespace exceeds a quota."""
    if access.installed().rows.get(Definition, kind, name) is None:
        _check(_namespace(name), 1, {}, 0)


def check_dag(name: str, dag: Dag) -> None:
    """Raise ``over_quota`` for a DAG, by its full name, with which its namespace exceeds a quota."""
    new = access.installed().rows.get(Definition, "dag", name) is None
    _check(_namespace(name), int(new), _fires_of_dag(name, dag), 0)


def _fires_of_dag(name: str, dag: Dag) -> dict[str, int]:
    """The fires a day of the schedule that starts the runs of a DAG."""
    return {dag_start(name): counted(compiled(name, dag).start) or 0}


def check_app(app: str, sent: App) -> None:
    """Raise ``over_quota`` for the document of an app with which its namespace exceeds a quota."""
    known = set(schedules_of(access.installed(), app))
    fires = {f"{app}.{name}": counted(schedule) or 0 for name, schedule in sent.schedules.items()}
    new = len(set(fires) - known)
    for name, dag in sent.dags.items():
        fires |= _fires_of_dag(f"{app}.{name}", dag.definition())
    left = dict.fromkeys(known - set(fires), 0)  # the deployment deletes these
    # Documents other than schedules are counted as they are in the table; a deployment replaces most of its own.
    _check(_namespace(app), new, {**left, **fires}, new)


def check_waiting(name: str, repeated: Callable[[], bool] = lambda: False) -> None:
    """Raise ``over_quota`` for a request that makes a job, if as many jobs wait in the namespace of a full name as the
    quota allows. A request that was ``repeated`` made its job before, so it is answered."""
    namespace = _namespace(name)
    quota = _quotas(namespace, read=True).waiting_jobs
    if quota is None:
        return
    waiting = _recent(memory().waiting, namespace, lambda: count(access.installed(), namespace, quota + 1))
    if waiting < quota or not repeated():
        document.check_waiting(namespace, quota, waiting)
        memory().waiting[namespace] = (memory().waiting[namespace][0], waiting + 1)


def _check(namespace: str, documents: int, fires: Mapping[str, int], schedules: int) -> None:
    before = _recent(memory().usages, namespace, lambda: usage_of(access.installed(), namespace))
    after = before.plus(documents, fires, schedules)
    document.check(namespace, _quotas(namespace, read=True), before, after)
    memory().usages[namespace] = (memory().usages[namespace][0], after)


def _namespace(name: str) -> str:
    return name.partition(".")[0]


def _quotas(namespace: str, read: bool) -> Quotas:
    """The quotas of a namespace. A GET request uses what is known, or the defaults: it must not cost one more read."""
    if read:
        return _recent(memory().quotas, namespace, lambda: quotas_of(access.installed(), namespace))
    if namespace in memory().quotas:
        return memory().quotas[namespace][1]
    return Quotas(requests_per_second=access.installed().settings.quota_requests_per_second)


def _recent(known: dict[str, tuple[Instant, T]], namespace: str, read: Callable[[], T]) -> T:
    """What a process knows of a namespace, read again after `REMEMBERED` ms."""
    now, found = access.installed().clock.now(), known.get(namespace)
    if found is None or now - found[0] >= REMEMBERED:
        found = (now, read())
        known.pop(namespace, None)
        known[namespace] = found
        if len(known) > MAX_KNOWN:
            del known[next(iter(known))]
    return found[1]
