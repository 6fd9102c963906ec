"""Send the events of OpenLineage about changes of the runs table, from its stream (H6).

Nothing of a run waits for this. The stream delivers each change at least once, in the order of each row, until this
step has sent its events or kept them as dead letters. So a Lambda that dies sends an event again, under the same ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from chalicelib.core import ids, masks
from chalicelib.core.instants import Instant
from chalicelib.core.names import SYSTEM
from chalicelib.core.openlineage import events, outlets
from chalicelib.core.openlineage.events import Document, Known, Step
from chalicelib.core.openlineage.outlets import Item, Later, Outcome, Refused, Sent
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.targets import registry
from chalicelib.flow.openlineage import dag_runs
from chalicelib.flow.openlineage.reader import Reader
from chalicelib.log import logger

REMEMBERED = 20_000  # events that this process has sent last


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of a run or a record in the stream. ``first``: it has created the row. ``written`` is when, in whole
    seconds. ``keys`` are those of the row, as the stream has them."""

    sequence: str
    row: Run | Record
    first: bool
    written: Instant
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unread:
    """A change that cannot be read, and why."""

    sequence: str
    keys: Mapping[str, Any]
    why: str


class Outlet(Protocol):
    """Where events are sent. Sending an event again is harmless: it has the same ids."""

    def send(self, items: Sequence[Item]) -> list[Outcome]:
        """The outcome of each. Events about one run are sent in their order. Does not raise."""


class Letters(Protocol):
    """The queue of events that were not taken, and of changes that could not be read."""

    def keep(self, item: Item, why: str) -> None: ...

    def keep_change(self, sequence: str, keys: Mapping[str, Any], why: str) -> None: ...


class Reporter:
    """``prefix`` begins the namespaces of jobs. ``namespaces``: only the runs of these are reported; empty: all."""

    def __init__(
        self, reader: Reader, outlet: Outlet, letters: Letters, prefix: str, namespaces: Collection[str] = ()
    ) -> None:
        self._reader, self._outlet, self._letters = reader, outlet, letters
        self._prefix, self._namespaces = prefix, frozenset(namespaces)
        self._sent: OrderedDict[str, None] = OrderedDict()
        # Since when an event fails while others are taken, and a change cannot be read. Lambda delivers what was not
        # taken again, without the others, so a later call alone does not tell.
        self._alone: OrderedDict[str, Instant] = OrderedDict()
        self._unread: OrderedDict[str, Instant] = OrderedDict()
        self._taken = reader.ports.clock.now()  # when the receiver last took an event

    def report(self, changes: Sequence[Changed], unread: Sequence[Unread] = ()) -> list[str]:
        """Send the events about these changes. Returns the sequence numbers of those that are to come again."""
        broken = list(unread)
        items: dict[str, Item] = {}
        for change in changes:
            try:
                for event in self._events(change):
                    item = Item(change.sequence, change.written, event)
                    if item.id not in self._sent:
                        items.setdefault(item.id, item)
            except Exception as error:  # one row that cannot be read does not stop the others
                logger.exception("lineage not read", extra={"sequence": change.sequence})
                broken.append(Unread(change.sequence, change.keys, said(error)))
        failed = [each.sequence for each in broken if not self._is_unread_for_good(each)]
        outcomes = self._outlet.send(list(items.values())) if items else []
        later = self._settle(list(items.values()), outcomes)
        taken = sum(isinstance(outcome, Sent) for outcome in outcomes)
        why = next((outcome.why for outcome in outcomes if isinstance(outcome, Later)), "")
        logger.info("lineage", extra={"changes": len(changes), "sent": taken, "waiting": len(later), "why": why})
        return [*failed, *later]

    def _events(self, change: Changed) -> Iterator[Document]:
        row = change.row
        if not self._is_asked(row.schedule):
            return
        if isinstance(row, Run):
            found = events.steps(row, change.first, change.written)
            known = self._reader.known(row) if found and self._is_reported(row) else None
            if known is not None:
                yield from (self._event_of(row, step, known) for step in found)
        over = dag_runs.ended(self._reader, row, change.written)
        if over is not None:
            start, step = over
            yield self._event_of(start, step, self._reader.known(start))

    def _event_of(self, run: Run, step: Step, known: Known) -> Document:
        return events.event_of(self._prefix, run, step, known, self._namespaces)

    def _is_asked(self, schedule: str) -> bool:
        namespace = schedule.partition(".")[0]
        return namespace != SYSTEM and (not self._namespaces or namespace in self._namespaces)

    def _is_reported(self, run: Run) -> bool:
        """Whether a run is one of OpenLineage: it works on data, and does not only pass on a message."""
        if registry.of_run(run).has_lifecycle or ids.is_of_dag(run.schedule):
            return True
        workflow = self._reader.workflow(run.workflow)
        return workflow is not None and bool(workflow.reads or workflow.produces)

    def _is_unread_for_good(self, change: Unread) -> bool:
        """Whether a change is given up that cannot be read, so that it holds up none behind it."""
        if change.sequence in self._sent:
            return True
        now = self._reader.ports.clock.now()
        if now - _first(self._unread, change.sequence, now) < outlets.GIVE_UP_ALONE:
            return False
        about = {"sequence": change.sequence, "keys": change.keys, "why": change.why}
        try:
            self._letters.keep_change(change.sequence, change.keys, change.why)
        except Exception:  # the stream delivers it again
            logger.exception("lineage not kept", extra=about)
            return False
        logger.error("lineage given up", extra=about)
        self._unread.pop(change.sequence)
        self._remember(change.sequence)
        return True

    def _settle(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> list[str]:
        """Keep what was refused or waits for too long. Returns the sequence numbers of what is to come again."""
        now = self._reader.ports.clock.now()
        self._note(items, outcomes, now)
        later: list[str] = []
        for item, outcome in zip(items, outcomes, strict=True):
            alone = self._alone.get(item.id)
            if isinstance(outcome, Later) and not outlets.is_given_up(item, outcome, alone, self._taken, now):
                later.append(item.sequence)
            elif isinstance(outcome, Sent) or self._keep(item, outcome):
                self._alone.pop(item.id, None)
                self._remember(item.id)
            else:
                later.append(item.sequence)
        return later

    def _note(self, items: Sequence[Item], outcomes: Sequence[Outcome], now: Instant) -> None:
        """Note which events fail while others are taken. If many fail and none is taken, the receiver does not work:
        then none of them fails alone."""
        failing = [
            each.id for each, found in zip(items, outcomes, strict=True) if isinstance(found, Later) and found.failed
        ]
        if any(isinstance(outcome, Sent) for outcome in outcomes):
            self._taken = now
            for event_id in failing:
                _first(self._alone, event_id, now)
        elif len(failing) > outlets.MOST_ALONE:
            for event_id in failing:
                self._alone.pop(event_id, None)

    def _keep(self, item: Item, outcome: Refused | Later) -> bool:
        """Keep an event as a dead letter. Returns whether it is kept."""
        try:
            self._letters.keep(item, outcome.why)
        except Exception:  # the stream delivers its change again
            logger.exception("lineage not kept", extra=_about(item, outcome.why))
            return False
        logger.error("lineage refused", extra=_about(item, outcome.why))
        return True

    def _remember(self, event_id: str) -> None:
        self._sent[event_id] = None
        while len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)


def _about(item: Item, why: str) -> dict[str, Any]:
    job = item.event["job"]
    return {"type": item.event["eventType"], "job": f"{job['namespace']}/{job['name']}", "run": item.run_id, "why": why}


def said(error: Exception) -> str:
    """Why a change could not be read, without secrets."""
    return masks.text(f"{type(error).__name__}: {error}")[: outlets.MAX_REASON]


def _first(known: OrderedDict[str, Instant], key: str, now: Instant) -> Instant:
    """When this was first so: what is known, or now."""
    found = known.setdefault(key, now)
    while len(known) > REMEMBERED:
        known.popitem(last=False)
    return found
