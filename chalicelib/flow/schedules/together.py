"""Put many schedules: their rows are read a hundred per call, and many are written in one transaction.

Each schedule is atomic for itself. A schedule whose write is refused leaves its transaction and is put alone, so it
delays no other one. A repeat of the same puts finishes what a crash has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.writes import MAX_WRITES, TrackStarts, Write
from chalicelib.flow import many
from chalicelib.flow.definitions import data
from chalicelib.flow.schedules import actions
from chalicelib.flow.schedules.actions import Change
from chalicelib.ports import Ports

BATCH_SIZE = 100  # schedules that are read together
Changes = dict[str, Change]


def put_all(
    ports: Ports,
    documents: Mapping[str, NewSchedule],
    by: str,
    data_bucket: str | None,
    has_time: Callable[[], bool] = lambda: True,
) -> bool:
    """Create or replace schedules, by their full names. The caller has checked them as for `actions.put`. Returns
    whether there was time for all; the first hundred are put in any case.

    Raises SluiceError as `actions.put` for the first schedule that cannot be put; those before it are put.
    """
    names = list(documents)
    for start in range(0, len(names), BATCH_SIZE):
        if start and not has_time():
            return False
        _put(ports, {name: documents[name] for name in names[start : start + BATCH_SIZE]}, by, data_bucket)
    return True


def _put(ports: Ports, documents: Mapping[str, NewSchedule], by: str, data_bucket: str | None) -> None:
    sent = {name: data.stored(ports, name, one.definition(), data_bucket) for name, one in documents.items()}
    for name, document in documents.items():
        data.keep(ports, name, document, data_bucket)
    seen = many.rows_of(ports, list(documents), timers=True)
    changes = {name: actions.planned(seen, name, documents[name], sent[name], by, checked=True) for name in documents}
    done: Changes = {}
    for group in _groups({name: change for name, change in changes.items() if change.plan}):
        done |= _commit(ports, group)
    actions.complete_puts(ports, done)
    for name, change in changes.items():
        if not change.plan:
            actions.counted(ports, change)
        elif name not in done:
            actions.put(ports, name, documents[name], by, checked=True, data_bucket=data_bucket)


def _groups(changes: Changes) -> Iterator[Changes]:
    """The changes of each transaction, with room for an audit record of each schedule."""
    group: Changes = {}
    for name, change in changes.items():
        if group and _size({**group, name: change}) > MAX_WRITES:
            yield group
            group = {}
        group[name] = change
    if group:
        yield group


def _size(group: Changes) -> int:
    return len(_plan(group)) + len(group)


def _plan(group: Changes) -> list[Write]:
    """The plan of a transaction. What several schedules ask of one workflow is written once."""
    rates: dict[str, TrackRates] = {}
    starts: dict[str, TrackStarts] = {}
    plan: list[Write] = []
    for write in (write for change in group.values() for write in change.plan):
        match write:
            case TrackRates(limit_name=limit_name):
                known = rates[limit_name].rates if limit_name in rates else ()
                rates[limit_name] = TrackRates(limit_name, tuple(dict.fromkeys((*known, *write.rates))))
            case TrackStarts(workflow=workflow):
                starts[workflow] = write
            case _:
                plan.append(write)
    return [*plan, *rates.values(), *starts.values()]


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
