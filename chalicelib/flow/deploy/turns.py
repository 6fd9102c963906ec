"""The order of the deployments of an app: the one that was accepted last has the turn, and no other changes the app.

A deployment takes the turn before its first write: the ``edition`` of the app's row becomes its mark. Each of its
transactions expects the mark. So a former deployment, which may still be worked off, ends with its next write. The end
of a deployment removes the mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import Conflict, ExpectDefinition, PutDefinition, PutState, RemoveDefinition, Write
from chalicelib.flow.deploy.plan import Plan
from chalicelib.ports import Ledger, Over, Ports

NONE = 0  # the mark of an app without a deployment in progress


def take(
    ports: Ports, plan: Plan, by: str, mark: int | None = None, shell: Mapping[str, Any] | None = None
) -> Definition | None:  # fmt: skip
    """Give the deployment of a plan the turn, and return the row of its app, which has the mark: ``mark``, or a new
    one. A ``shell`` is stored if the app does not exist. None if another deployment had the turn since the plan was
    made: then the plan may be wrong."""
    row, now = ports.rows.get(Definition, "app", plan.app), ports.clock.now()
    if row is not None and row.edition == mark:
        return row
    if row != plan.row or (row is None and shell is None):
        return None
    # The row that was read is part of a new mark, so two requests at one instant have different ones.
    edition = mark or mark_of(plan.app, now, by, row.edition if row is not None else NONE)
    if row is not None:
        after = replace(row, edition=edition, updated_at=now, by=by)
        write = PutDefinition(after, row.version, row.edition, before=row)
    else:
        # The app must exist before its parts. A null in ``deployed`` means that no deployment has finished yet.
        after = Definition("app", plan.app, {**(shell or {}), "deployed": None}, 1, now, by, edition=edition)
        write = PutDefinition(after, None)
    return after if ports.ledger.commit([write]) is None else None


def end(ports: Ports, app: str, mark: int) -> None:
    """End the turn of a deployment, unless another one has it."""
    row = ports.rows.get(Definition, "app", app)
    if row is not None and row.edition == mark and mark != NONE:
        ports.ledger.commit([PutDefinition(replace(row, edition=NONE), row.version, mark)])


def in_turn(ports: Ports, row: Definition) -> Ports:
    """The ports of a deployment that has the turn: no definition or schedule changes once another one has it. Such a
    write raises ``changed_meanwhile``."""
    return replace(ports, ledger=InTurn(ports.ledger, row))


class InTurn(Over):
    """A ledger that expects the mark of a deployment in each transaction that changes a definition or a schedule."""

    def __init__(self, ledger: Ledger, row: Definition) -> None:
        super().__init__(ledger)
        self._ledger, self._row, self._expected = ledger, row, ExpectDefinition(row)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        if not any(isinstance(write, PutState | PutDefinition | RemoveDefinition) for write in writes):
            return self._ledger.commit(writes)
        if any(_is_of(write, self._row) for write in writes):  # the write itself expects the row as it was read
            return self._ledger.commit(writes)
        refused = self._ledger.commit([*writes, self._expected])
        if refused is not None and self._expected in refused.writes:
            raise overtaken(self._row.name)
        return refused


def overtaken(app: str) -> SluiceError:
    """The error of a deployment that has lost the turn."""
    hint = "read what the app is now, and deploy again if needed"
    message = f"expected to deploy the whole document of app {app}, got a later request that took over"
    return SluiceError("changed_meanwhile", message, None, hint)


def _is_of(write: Write, row: Definition) -> bool:
    """Whether a write puts or deletes this row."""
    return isinstance(write, PutDefinition | RemoveDefinition) and (
        (write.definition.kind, write.definition.name) == (row.kind, row.name)
    )


def mark_of(*parts: object) -> int:
    """The mark of a deployment. A repeated request of an upload computes the same one."""
    return int(ids.digest(*parts, length=12), 16) or 1
