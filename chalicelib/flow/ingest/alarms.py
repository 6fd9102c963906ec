"""Turn a change of a CloudWatch alarm into an event, and apply it to every schedule that waits for the alarm (T23)."""

from __future__ import annotations

from chalicelib.core.events.alarms import AlarmChange, alarm_event
from chalicelib.flow.ingest.outbox import store_and_apply
from chalicelib.ports import Ports


def match_alarm(ports: Ports, change: AlarmChange) -> str:
    """Store a change of an alarm and apply it. Returns what was done, in words.

    Sluice gets every change of every alarm of the account. A change that no schedule waits for costs one read.
    """
    if not change.is_new_state:
        return f"ignored: the alarm was in the state {change.state} before"
    now = ports.clock.now()
    event = alarm_event(change, now)
    if not ports.catalog.subscriptions(event.key, 1, None).items:
        return "ignored: no schedule waits for it"
    store_and_apply(ports, [event], now)
    return "applied"
