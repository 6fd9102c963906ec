"""Put many schedules: their rows are read a hundred per call, and many are written in one transaction.

Each schedule is atomic for itself. A schedule whose write is refused leaves its transaction and is put later, so it
delays no other one. A repeat of the same puts finishes what a crash has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from chalicelib.core import errors
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import MAX_WRITES, ExpectStops, TrackStarts, Write
from chalicelib.flow import many
from chalicelib.flow.definitions import data
from chalicelib.flow.schedules import actions, stops
from chalicelib.flow.schedules.actions import Change, MayChange
from chalicelib.ports import MAX_CONFLICTS, Ports

BATCH_SIZE = 100  # schedules that are read together
Changes = dict[str, Change]


def put_all(
    ports: Ports,
    documents: Mapping[str, NewSchedule],
    by: str,
    data_bucket: str | None,
    has_time: Callable[[], bool] = lambda: True,
    may_put: MayChange = actions.always,
) -> bool:
    """Create or replace schedules, by their full names. The caller has checked them as for `actions.put`. Returns
    whether there was time for all; the first hundred are put in any case. ``may_put`` says whether a schedule may be
    put over its present state; if not, it is left out.

    Raises SluiceError as `actions.put` for the first schedule that cannot be put; those before it are put.
    """
    names = list(documents)
    for start in range(0, len(names), BATCH_SIZE):
        if start and not has_time():
            return False
        left = {name: documents[name] for name in names[start : start + BATCH_SIZE]}
        for _ in range(MAX_CONFLICTS):
            if not (left := _put(ports, left, by, data_bucket, may_put)):
                break
        else:
            raise errors.changed_meanwhile(f"schedule {next(iter(left))}")
    return True


def _put(
    ports: Ports, documents: Mapping[str, NewSchedule], by: str, data_bucket: str | None, may_put: MayChange
) -> dict[str, NewSchedule]:
    """Put schedules as they are now. Returns those whose writes were refused, because they have changed meanwhile."""
    changes = _planned(ports, documents, by, data_bucket, may_put)
    planned = {name: change for name, change in changes.items() if change.plan}
    done: Changes = {}
    for group in _groups(planned):
        done |= _commit(ports, group)
    actions.complete_puts(ports, done)
    for name, change in changes.items():
        if name not in planned:
            actions.counted(ports, change)
    return {name: documents[name] for name in planned if name not in done}


def _planned(
    ports: Ports, documents: Mapping[str, NewSchedule], by: str, data_bucket: str | None, may_put: MayChange
) -> Changes:
    """The changes that the puts make, once their large data is stored."""
    for name, document in documents.items():
        data.keep(ports, name, document, data_bucket)
    seen = stops.read_ahead(many.rows_of(ports, list(documents), timers=True), documents)
    return {
        name: actions.planned(
            seen, name, document, data.stored(ports, name, document.definition(), data_bucket), by, checked=True
        )
        for name, document in documents.items()
        if may_put(name, seen.rows.get(ScheduleState, name))
    }


def _groups(changes: Changes) -> Iterator[Changes]:
    """The changes of each transaction, with room for an audit record of each schedule, and for what a deployment
    expects."""
    group: Changes = {}
    for name, change in changes.items():
        if group and _size({**group, name: change}) > MAX_WRITES:
            yield group
            group = {}
        group[name] = change
    if group:
        yield group


def _size(group: Changes) -> int:
    return len(_plan(group)) + len(group) + 1


def _plan(group: Changes) -> list[Write]:
    """The plan of a transaction. What several schedules ask of one workflow, or expect of one row, is written once."""
    rates: dict[str, TrackRates] = {}
    starts: dict[str, TrackStarts] = {}
    expected: list[ExpectStops] = []
    plan: list[Write] = []
    for write in (write for change in group.values() for write in change.plan):
        match write:
            case TrackRates(limit_name=limit_name):
                known = rates[limit_name].rates if limit_name in rates else ()
                rates[limit_name] = TrackRates(limit_name, tuple(dict.fromkeys((*known, *write.rates))))
            case TrackStarts(workflow=workflow):
                starts[workflow] = write
            case ExpectStops():
                expected.append(write)
            case _:
                plan.append(write)
    # All copies of the stops are equal, so the one that was read at the lowest revision stands for the others.
    oldest = sorted(expected, key=lambda write: write.read.rev if write.read is not None else 0)[:1]
    return [*plan, *rates.values(), *starts.values(), *oldest]


def _commit(ports: Ports, group: Changes) -> Changes:
    """Commit a group in one transaction, without the schedules whose writes are refused. Returns what was put."""
    while group:
        refused = ports.ledger.commit(_plan(group))
        if refused is None:
            return group
        left = {
            name: change for name, change in group.items() if not any(write in refused.writes for write in change.plan)
        }
        group = left if len(left) < len(group) else {}
    return {}
