"""What users do to a schedule, and what may still start after the acknowledgement (C13)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from chalicelib.aws.tables import items
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry
from chalicelib.core.targets.sub_batches import MAX_BATCHES
from tests.faults.meetings.scheduler import SQS_BATCH, Sent
from tests.faults.meetings.situation import Act, Do, Played
from tests.support.world import World, full

NEW = {"properties": {"new": True}}
# An invocation reads the schedule states, or the count of closings, before each sub-batch: so many messages.
MAX_IN_FLIGHT = MAX_BATCHES * SQS_BATCH
ASKED_FOR = ("redrive", "run_now")  # what a user requests starts even if the schedule is disabled
May = Literal["in flight", "claimed", "new"]


@dataclass(frozen=True)
class Acknowledged:
    """The rows at the acknowledgement of a closing: start calls that are recorded and not made yet, and the runs that
    exist.
    """

    in_flight: frozenset[str]
    claimed: frozenset[str]


def acknowledged(name: str) -> Do:
    def note(world: World) -> Acknowledged:
        rows = [items.from_item(Run, row) for table, row in world.tables.rows()
                if table == "RunsTable" and row["sk"]["S"].startswith("A#")]  # fmt: skip
        runs = [run for run in rows if run.schedule == full(name)]
        made = Counter([*world.targets.emr.calls, *(f"{run_id}-{attempt}" for run_id, attempt, _ in
                                                    world.targets.queue.tried)])  # fmt: skip
        in_flight = frozenset(run.request.name for run in runs if run.calls > made[run.request.name])
        return Acknowledged(in_flight, frozenset(run.run_id for run in runs))

    return note


def only_what_may(may: May, name: str) -> Any:
    def promise(played: Played, actor: int) -> None:
        if may == "claimed" and any(act.reopens for act in played.acts):
            return
        ended = played.log.ended[actor]
        noted: Acknowledged = ended.noted
        late = [sent for sent in played.log.sent if sent.number > ended.number and sent.run.schedule == full(name)]
        closed = played.generations.get(full(name), 0)  # an act that meets this one may begin a later generation
        late = [sent for sent in late if sent.run.generation <= closed and sent.run.kind not in ASKED_FOR]
        called = [sent for sent in late if registry.of_run(sent.run).has_lifecycle]
        wrong = [sent for sent in called if sent.run.request.name not in noted.in_flight and not _may(may, sent, noted)]
        assert wrong == [], f"started after the acknowledgement: {[sent.run.request.name for sent in wrong]}"
        messages = [sent for sent in late if sent not in called and not _may(may, sent, noted)]
        delivered = Counter(sent.actor for sent in messages)
        read = [sent.run.run_id for sent in messages if played.log.has_read(sent, ended)]
        assert read == [], f"delivered by invocations that have read rows since the acknowledgement: {read}"
        assert all(actor >= 0 and count <= MAX_IN_FLIGHT for actor, count in delivered.items()), (
            f"delivered after the acknowledgement: {dict(delivered)}, by number of the invocation"
        )

    return promise


def _may(may: May, sent: Sent, noted: Acknowledged) -> bool:
    if may == "claimed":
        return sent.run.run_id in noted.claimed
    return may == "new" and (sent.run.attempt > 1 or sent.run.request.properties.get("new") is True)


def closing(do: Do, may: May = "in flight", name: str = "daily") -> Act:
    return Act(do, acknowledged(name), only_what_may(may, name), alone=True, seen="runs")


def disable(name: str = "daily") -> Act:
    return closing(lambda world: world.disable(name), name=name)


def delete(name: str = "daily") -> Act:
    return closing(lambda world: world.delete(name), name=name)


def hold(name: str = "daily") -> Act:
    return closing(lambda world: world.pause(name), "claimed", name)


def backlog(name: str = "daily") -> Act:
    return closing(lambda world: world.pause(name, "backlog"), "claimed", name)


def drain(name: str = "daily") -> Act:
    return Act(lambda world: world.pause(name, "drain"), alone=True, reopens=True)


def resume(name: str = "daily") -> Act:
    return Act(lambda world: world.resume(name), alone=True, reopens=True)


def enable(name: str = "daily") -> Act:
    return Act(lambda world: world.enable(name), alone=True, reopens=True)


def carry(schedule: dict[str, Any], name: str = "daily") -> Act:
    """An update that carries the progress: later launches have the new properties."""
    return closing(lambda world: world.put(name, {**schedule, **NEW, "on_update": "carry"}), "new", name)


def put(schedule: dict[str, Any], name: str = "daily") -> Act:
    """An update that begins a new generation: no job of the old one starts any more."""
    return closing(
        lambda world: world.put(name, {**schedule, "properties": {"newer": True}, "on_update": "drop"}), name=name
    )
