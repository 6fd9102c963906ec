"""Read and replace what a namespace grants to others, and wake what waits for its grants (O9)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from chalicelib.core.access.grants import Grants
from chalicelib.core.rows import kinds
from chalicelib.core.rows.grants import GrantsRow, waiters_key
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import RemoveSubscription, Replace
from chalicelib.flow import lookup, wake
from chalicelib.flow.definitions import of_namespace
from chalicelib.flow.definitions.of_namespace import DocumentOfNamespace
from chalicelib.flow.definitions.store import Change
from chalicelib.ports import Ports

GRANTS = DocumentOfNamespace(
    GrantsRow, "the grants", "grants document", "grant something: sluice grants {} --file grants.yaml"
)
get = GRANTS.get


def put(ports: Ports, namespace: str, grants: Grants, by: str, if_match: int | None = None) -> Change:
    """Replace what a namespace grants to others (`of_namespace.put`). Once this returns, nothing starts any more that
    lacks a grant."""
    grants.check_owner(namespace)
    document = grants.model_dump(mode="json", exclude_defaults=True)
    change = of_namespace.put(ports, GRANTS, namespace, document, by, if_match)
    if change.did != "unchanged":
        now = ports.clock.now()
        ports.hints.send([kinds.ref(GrantsRow, namespace)], now, now)
    return change


def wake_waiting(ports: Ports, namespace: str) -> int:
    """Wake the jobs that wait for a grant of a namespace whose grants have changed. Returns how many refs were hinted.

    A job that still lacks its grant waits again, with a new row for its schedule. The grants stay in the wake index
    until all are woken, so that a crash repeats this."""
    row = ports.rows.get(GrantsRow, namespace)
    if row is None or row.wake_at is None:
        return 0
    woken = 0
    for waiting in lookup.every(partial(ports.catalog.subscriptions, waiters_key(namespace))):
        schedule_state = ports.rows.get(ScheduleState, waiting.schedule)
        if schedule_state is not None and schedule_state.generation == waiting.generation and schedule_state.exists:
            woken += wake.constrained(ports, waiting.schedule, waiting.generation)
        ports.ledger.commit([RemoveSubscription(waiting)])
    # A later change of the grants has another revision, and wakes the jobs itself.
    ports.ledger.commit([Replace(replace(row, rev=row.rev + 1, wake_at=None))])
    return woken
