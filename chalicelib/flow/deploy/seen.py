"""What a deployment saw when it was accepted, so that it undoes no change that was acknowledged after that (L8).

A deployment of an upload puts its schedules after the answer. Meanwhile users may put, disable or delete some of them.
At acceptance, a stamp is recorded of each part that the deployment will change. A part whose stamp is another one later
is left alone, and so is a part that had nothing to change. Stamps hold versions and modes, so clocks may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.fires import lifetime
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.deploy import validate
from chalicelib.flow.deploy.plan import Part, Plan
from chalicelib.ports import Ports

CHANGING = ("created", "replaced", "deleted")
BESIDE = " / "  # between the stamp of a DAG's document and that of its start


def stamps_of(ports: Ports, plan: Plan) -> dict[str, str]:
    """The stamps of the parts that a plan changes after its definitions are stored, as ``kind name``."""
    parts = [part for part in plan.parts if _is_later(part)]
    read = _rows_of(ports, parts)
    return {_key(part): _stamp(read, part) for part in parts}


class Seen:
    """Decides what a deployment may still change. ``left`` are the parts that it leaves alone, as ``kind name``.
    Without stamps, as in a deployment whose request is answered when it is done, it may change everything."""

    def __init__(self, stamps: Mapping[str, str] | None) -> None:
        self._stamps = stamps
        self._left: set[str] = set()

    @property
    def left(self) -> list[str]:
        return sorted(self._left)

    def may_put(self, name: str, state: ScheduleState | None) -> bool:
        """Whether no user has changed a schedule, or the start of a DAG, since the acceptance."""
        if not ids.is_of_dag(name):
            return self._noted(f"schedule {name}", _of_state(state, self._stamp_of(f"schedule {name}")))
        key = f"dag {ids.dag_of(name)}"
        stamp = self._stamp_of(key)
        return self._noted(key, f"{stamp.partition(BESIDE)[0]}{BESIDE}{_of_start(state, stamp)}")

    def may_change(self, ports: Ports, part: Part) -> bool:
        """Whether no user has changed a part since the acceptance. Definitions are put before it, so none is due."""
        if part.kind == "app" or part.action not in CHANGING:
            return True
        return self._noted(_key(part), _stamp(ports, part, self._stamp_of(_key(part))) if _is_later(part) else None)

    def only_seen(self, ports: Ports, plan: Plan) -> Plan:
        """The plan without what is left alone: these parts are ``untouched``."""
        if self._stamps is None:
            return plan
        read = _rows_of(ports, [part for part in plan.parts if _is_later(part)])
        parts = tuple(part if self.may_change(read, part) else _untouched(part) for part in plan.parts)
        kept = replace(plan, parts=parts)
        # A schedule that is left alone may need a workflow that the document does not name.
        used = validate.referrers_of_removed(ports, kept)
        self._left |= {f"workflow {name}" for name in used}
        return replace(kept, parts=tuple(_untouched(part) if part.name in used else part for part in parts))

    def _stamp_of(self, key: str) -> str:
        return (self._stamps or {}).get(key, "")

    def _noted(self, key: str, stamp: str | None) -> bool:
        if self._stamps is None or (key in self._stamps and self._stamps[key] == stamp):
            return True
        self._left.add(key)
        return False


EVERYTHING = Seen(None)


def _is_later(part: Part) -> bool:
    """Whether a part changes after the answer: a schedule, a DAG, or a workflow that goes."""
    return part.action in CHANGING and (part.kind in ("schedule", "dag") or part.action == "deleted")


def _untouched(part: Part) -> Part:
    return replace(part, action="untouched", document=None, becomes={})


def _key(part: Part) -> str:
    return f"{part.kind} {part.name}"


def _rows_of(ports: Ports, parts: Sequence[Part]) -> Ports:
    names = [part.name for part in parts if part.kind == "schedule"]
    return ports.prefetch.read(ports, [kinds.key(ScheduleState, name) for name in names]) if names else ports


def _stamp(ports: Ports, part: Part, seen: str = "") -> str:
    """The present stamp of a part. That of a DAG has its document and its start."""
    if part.kind == "schedule":
        return _of_state(ports.rows.get(ScheduleState, part.name), seen)
    row = _of_row(ports.rows.get(Definition, part.kind, part.name))
    if part.kind != "dag":
        return row
    return f"{row}{BESIDE}{_of_start(ports.rows.get(ScheduleState, ids.dag_start(part.name)), seen)}"


def _of_start(state: ScheduleState | None, seen: str) -> str:
    """The same for the start of a DAG. It is the first part that a deletion of the DAG deletes, and a repeated deletion
    goes on."""
    before = seen.rpartition(BESIDE)[2]
    begun = state is not None and not state.exists and before.startswith(f"{state.version} ")
    return before if begun else _of_state(state, before)


def _of_row(row: Definition | None) -> str:
    """A definition that is deleted and created begins with the first version again, at another instant."""
    return f"{row.version} {row.updated_at}" if row is not None else ""


def _of_state(state: ScheduleState | None, seen: str) -> str:
    """The version and the mode of a schedule. A mode that Sluice itself has set since is no change of a user: then the
    mode is the one that was ``seen``."""
    if state is None:
        return ""
    held = state.mode == "hold" and state.by == lifetime.BY
    before = f"{state.version} "
    return seen if (held or state.mode == "completed") and seen.startswith(before) else f"{before}{state.mode}"
