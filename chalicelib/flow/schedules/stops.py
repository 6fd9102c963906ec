"""Stop and start everything of a namespace, an app or a tag (L24): schedules, DAGs and messages.

A stop is a row first. Then each schedule in its scope gets the mark of it, many in one transaction. Only then the stop
is acknowledged: from then on nothing of the scope starts. A start removes the marks, and the row last. If a request
dies, the tick goes on; the same request does, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.instants import SECOND, Instant, Millis, iso
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import Scope, Stop, StopsRow, Timeouts, stops_of
from chalicelib.core.schedules import stops
from chalicelib.core.views import At, View
from chalicelib.core.writes import ExpectStops, PutState, Write
from chalicelib.flow import lookup, many
from chalicelib.flow.definitions import of_kind
from chalicelib.ports import MAX_CONFLICTS, Kind, Ports

TOGETHER = 50  # schedules that are marked in one transaction
TIME_FOR_BATCH: Millis = 8 * SECOND
FIRST = "0"  # the copy of the row that is read to change it

Change = Callable[[ScheduleState, Instant], ScheduleState]


class StopView(View):
    """A stop: what it covers, since when, who stopped it, or gave the present reason, and how far it is. With
    ``timeouts`` stop those of waiting jobs stand still."""

    namespace: str
    app: str | None
    tag: str | None
    reason: str
    by: str
    since: At
    state: str
    timeouts: Timeouts


class ErrorOfChangeView(View):
    """An error as a request for one schedule alone would get it."""

    code: str
    message: str
    field: str | None
    hint: str | None


class FailedChangeView(View):
    """A schedule that did not change; ``error`` is the error that a request for it alone would get."""

    name: str
    error: ErrorOfChangeView


class StopReportView(View):
    """What a stop or a start did with each schedule, DAG and message; of a dry run, what it would do. ``complete`` is
    false if the time of the request did not suffice: the same request goes on, and so does the next tick. ``stops`` has
    the stops that cover the same place now."""

    changed: list[str]
    unchanged: list[str]
    failed: list[FailedChangeView]
    complete: bool
    dry_run: bool
    stops: list[StopView]


@dataclass(frozen=True, slots=True)
class Covering:
    """The stops that may cover a schedule that a put makes: a copy of their row as it was read, and its tags."""

    row: StopsRow | None
    copy: str
    tags: Mapping[str, str]

    def applied(
        self, state: ScheduleState, plan: Sequence[Write], now: Instant
    ) -> tuple[ScheduleState, list[Write]]:  # fmt: skip
        return stops.put(state, plan, self.copy, self.row, self.tags, now)


@dataclass(slots=True)
class _Outcome:
    """What was done, by the names that people know; a DAG with many schedules is one name."""

    changed: dict[str, None] = field(default_factory=dict)
    unchanged: dict[str, None] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    complete: bool = True


def covering(ports: Ports, name: str, tags: Mapping[str, str]) -> Covering:
    """The stops that may cover a schedule with these tags of its own."""
    copy = stops.copy_of(name)
    row = ports.rows.get(StopsRow, name.partition(".")[0], copy)
    by_tag = any(stop.of.tag for stop in stops_of(row))
    return Covering(row, copy, {**of_app(ports, name.rpartition(".")[0]), **tags} if by_tag else tags)


def read_ahead(ports: Ports, names: Iterable[str], *more: Key) -> Ports:
    """The ports with the copies read ahead that puts of these schedules expect, and ``more`` rows."""
    copies = dict.fromkeys((name.partition(".")[0], stops.copy_of(name)) for name in names)
    return ports.prefetch.read(ports, [*more, *(kinds.key(StopsRow, *copy) for copy in copies)])


def of_app(ports: Ports, app: str) -> Mapping[str, str]:
    """The tags of an app, which its schedules, DAGs and messages inherit."""
    return tags_of(ports.rows.get(Definition, "app", app))


def of_namespace(ports: Ports, namespace: str) -> tuple[Stop, ...]:
    """The stops of a namespace."""
    return stops_of(ports.rows.get(StopsRow, namespace, FIRST))


def stop(
    ports: Ports, scope: Scope, reason: str, by: str, dry_run: bool = False, timeouts: Timeouts = "count"
) -> StopReportView:
    """Stop what a scope covers: once this returns with ``complete``, nothing of it starts. A stop of what is stopped
    for the same reason changes nothing; another reason replaces the former, and so do other ``timeouts``. Raises
    ``not_found`` for a place that does not exist, and ``invalid`` for a tag that nothing has, and for one stop too
    many."""
    _check_place(ports, scope)
    if scope.tag and next(_members(ports, scope), None) is None:
        raise _fits_nothing(scope)
    if dry_run:
        row = ports.rows.get(StopsRow, scope.namespace, FIRST)
        planned = stops.begun(row, scope, reason, by, ports.clock.now(), timeouts)
        wanted = next(each for each in planned if each.scope == str(scope))
        return _report(ports, scope, _each(ports, scope, _marking(wanted), None), dry_run=True)
    present = _write(ports, scope.namespace, lambda row, now: stops.begun(row, scope, reason, by, now, timeouts))
    begun = next(each for each in present if each.scope == str(scope))
    return _report(ports, scope, _go_on(ports, begun))


def start(ports: Ports, scope: Scope, dry_run: bool = False) -> StopReportView:
    """Start what a scope covers: all that ran before the stop runs again, unless another stop covers it, too. What is
    not stopped does not change. Raises ``not_found`` for a place that does not exist and is not stopped."""
    row = ports.rows.get(StopsRow, scope.namespace, FIRST)
    found = next((each for each in stops_of(row) if each.scope == str(scope)), None)
    if found is None:
        _check_place(ports, scope)
        if scope.tag and next(_members(ports, scope), None) is None:
            raise _fits_nothing(scope)
        names = dict.fromkeys(map(_shown, _members(ports, scope)))
        return _report(ports, scope, _Outcome(unchanged=names), dry_run)
    if dry_run:
        return _report(ports, scope, _each(ports, scope, _unmarking(found), None), dry_run=True)
    present = _write(ports, scope.namespace, lambda row, now: stops.with_state(row, found, "starting"))
    ending = found._replace(state="starting")
    if ending not in present:
        raise errors.changed_meanwhile(f"the stop of {scope.said}")
    return _report(ports, scope, _go_on(ports, ending))


def carry_on(ports: Ports, namespace: str, copy: str) -> None:
    """Go on with the stops and starts of a namespace that have not reached all schedules."""
    for each in stops_of(ports.rows.get(StopsRow, namespace, copy)):
        if each.state != "stopped":
            _go_on(ports, each)


def view_of(each: Stop) -> StopView:
    namespace, _, app = each.of.place.partition(".")
    return {
        "namespace": namespace,
        "app": f"{namespace}.{app}" if app else None,
        "tag": each.of.tag or None,
        "reason": each.reason,
        "by": each.by,
        "since": iso(each.at),
        "state": each.state,
        "timeouts": each.timeouts,
    }


def covers_place(each: Stop, place: str) -> bool:
    """Whether a stop covers everything of a place, or a part of it."""
    return f"{place}.".startswith(f"{each.of.place}.") or each.of.place.startswith(f"{place}.")


def _marking(begun: Stop) -> Change:
    return lambda state, now: stops.marked(state, begun, now)


def _unmarking(ending: Stop) -> Change:
    return lambda state, now: stops.unmarked(state, ending, now)


def _go_on(ports: Ports, begun: Stop) -> _Outcome:
    """Give all schedules the mark of a stop, or remove that of one that is started; then write that it is done."""
    if begun.state == "starting":
        # Not by its tag: what had the tag when it was stopped may have lost it since.
        outcome = _each(ports, Scope(begun.of.place), _unmarking(begun), begun)
    else:
        outcome = _each(ports, begun.of, _marking(begun), begun)
    if not outcome.complete or outcome.failed:
        ports.hints.send([kinds.ref(StopsRow, begun.of.namespace, FIRST)], ports.clock.now(), ports.clock.now())
        return outcome
    namespace = begun.of.namespace
    if begun.state == "starting":
        _write(ports, namespace, lambda row, now: stops.without(row, begun))
    elif begun.state == "stopping":
        _write(ports, namespace, lambda row, now: stops.with_state(row, begun, "stopped"))
    return outcome


def _write(
    ports: Ports, namespace: str, change: Callable[[StopsRow | None, Instant], tuple[Stop, ...]]
) -> tuple[Stop, ...]:
    """Write the stops of a namespace, and return them. Raises ``conflict`` after many conflicts."""
    for _ in range(MAX_CONFLICTS):
        row, now = ports.rows.get(StopsRow, namespace, FIRST), ports.clock.now()
        after = change(row, now)
        if after == stops_of(row):
            return after
        if len(after) > stops.MAX_STOPS:
            hint = f"start what no longer has to be stopped; GET /v1/namespaces/{namespace}/stops lists them"
            raise errors.invalid("tag", f"at most {stops.MAX_STOPS} stops in a namespace", "one more", hint)
        plan = stops.written(row, namespace, after, now)
        if ports.ledger.commit(plan) is None:
            return after
    raise errors.changed_meanwhile(f"namespace {namespace}")


def _each(ports: Ports, scope: Scope, change: Change, begun: Stop | None) -> _Outcome:
    """Change the state of each schedule of a scope. Without ``begun``, a dry run: nothing is written."""
    outcome = _Outcome()
    for names in _batches(_members(ports, scope)):
        if outcome.changed and begun is not None and not ports.has_time(TIME_FOR_BATCH):
            outcome.complete = False
            break
        _change(ports, names, change, begun, outcome)
    outcome.unchanged = {name: None for name in outcome.unchanged if name not in outcome.changed}
    return outcome


def _change(ports: Ports, names: Sequence[str], change: Change, begun: Stop | None, outcome: _Outcome) -> None:
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        living = [state for state in many.states(ports, names)[1] if state.exists]
        pairs = [(state, change(state, now)) for state in living]
        outcome.unchanged |= {_shown(state.schedule): None for state, after in pairs if after == state}
        writes = [PutState(replace(after, rev=state.rev + 1), state) for state, after in pairs if after != state]
        if not writes:
            return
        done = writes if begun is None else _committed(ports, begun, writes)
        outcome.changed |= {_shown(write.schedule_state.schedule): None for write in done}
        if begun is None:
            return
        ports.hints.send([kinds.ref(ScheduleState, write.schedule_state.schedule) for write in done], now, now)
        names = [write.schedule_state.schedule for write in writes if write not in done]
        if not names:
            return
    outcome.failed |= {_shown(name): None for name in names}


def _committed(ports: Ports, begun: Stop, writes: Sequence[PutState]) -> Sequence[PutState]:
    """Commit what can be committed in one transaction, while the stop is as it is here. Returns what was written.
    Raises ``conflict`` if the stop has been changed."""
    namespace, copy = begun.of.namespace, stops.copy_of(writes[0].schedule_state.schedule)
    for _ in range(MAX_CONFLICTS if writes else 0):
        row = ports.rows.get(StopsRow, namespace, copy)
        if not stops.has(row, begun):
            raise errors.changed_meanwhile(f"the stop of {begun.of.said}")
        refused = ports.ledger.commit([*writes, ExpectStops(namespace, copy, row)])
        if refused is None:
            return writes
        writes = [write for write in writes if write not in refused.writes]
    return ()


def _members(ports: Ports, scope: Scope) -> Iterator[str]:
    """The names of the schedules of a scope, those of DAGs and messages included."""
    namespace, _, app = scope.place.partition(".")
    apps = [scope.place] if app else [row.name for row in lookup.definitions_in(ports, "app", namespace)]
    for each in apps:
        names = chain(lookup.schedules_of(ports, each), (row.schedule for row in of_kind.messages_of(ports, each)))
        if not scope.tag:
            yield from names
            continue
        inherited = of_app(ports, each)
        of_dags = {row.name: tags_of(row) for row in lookup.definitions_in(ports, "dag", each)}
        for batch in _batches(names):
            for name, (_, schedule) in many.schedules(ports, batch).items():
                # Nodes that an older version has made have no tags of their own.
                own = of_dags.get(ids.dag_of(name), {}) if ids.is_of_dag(name) else {}
                if scope.covers(name, {**inherited, **own, **schedule.tags}):
                    yield name


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while batch := list(islice(left, TOGETHER)):
        yield batch


def tags_of(row: Definition | None) -> Mapping[str, str]:
    """The tags of a stored document; none without one."""
    found: Any = row.document.get("tags") if row is not None else None
    return found or {}


def _check_place(ports: Ports, scope: Scope) -> None:
    """Raise ``not_found`` (404) for a namespace or an app that does not exist."""
    kind: Kind = "app" if "." in scope.place else "namespace"
    if ports.rows.get(Definition, kind, scope.place) is None:
        raise lookup.missing(ports, kind, scope.place)


def _fits_nothing(scope: Scope) -> errors.SluiceError:
    expected = f"a tag that a schedule, a DAG, a message or an app of {scope.place} has"
    return errors.invalid("tag", expected, scope.tag, "sluice get schedules -o yaml shows the tags")


def _shown(name: str) -> str:
    """A schedule, DAG or message by the name that people know."""
    if ids.is_of_dag(name):
        return ids.dag_of(name)
    return name.replace(f".{ids.MESSAGE}", ".", 1) if ids.is_of_message(name) else name


def _report(ports: Ports, scope: Scope, outcome: _Outcome, dry_run: bool = False) -> StopReportView:
    present = [each for each in of_namespace(ports, scope.namespace) if covers_place(each, scope.place)]
    error: Any = errors.changed_meanwhile("the schedule").to_dict()["error"]
    return {
        "changed": list(outcome.changed),
        "unchanged": list(outcome.unchanged),
        "failed": [{"name": name, "error": error} for name in outcome.failed],
        "complete": outcome.complete,
        "dry_run": dry_run,
        "stops": [view_of(each) for each in present],
    }
