"""Acts of a user between the nominal instant of a fire and the instants at which its events are due (T4, L4, L6).

Jitter, and windows, make a fire last for minutes. In that time some of its events are jobs, and the timer has the
others. Each order of drains, resumes, updates and disables must leave each event with one run or one record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis, iso
from chalicelib.core.triggers.time import TimeTrigger
from tests.faults.fire_world import NAME, NOON, Life
from tests.support.samples import every
from tests.support.world import full

FIRE = NOON + 20 * MINUTE
EXPRESSION, JITTER = "0 */20 * * * *", "6m"
EACH = {"type": "time", "expression": EXPRESSION, "jitter": JITTER}
TRIGGERS: dict[str, dict[str, Any]] = {
    "each": {"trigger": EACH},
    "ends": {"trigger": EACH, "ttl": "9h"},  # its timer also has the end
    "once": {"trigger": {"type": "time", "due_time": iso(FIRE), "jitter": JITTER}},
}
SPREADS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"count": 4, "over": "15m"},
    {"count": 7},
    {"count": 30, "over": "5s"},
    {"count": 20, "over": "10m"},  # several jobs before the instant
    {"count": 300, "over": "500m"},
)
# When the acts begin: after the nominal instant, or before the first event is due, which is prepared then.
STARTS: tuple[tuple[str, Millis], ...] = (
    ("nominal", 1), ("due", -100 * SECOND), ("due", -75 * SECOND), ("due", -30 * SECOND), ("due", 125 * SECOND),
)  # fmt: skip
PREPARED = 2  # from this one on, the first event is prepared
OFFSETS: tuple[Millis, ...] = (0, 35 * SECOND)  # between two acts
# A fire has as many events by another window, so that all of them can be counted.
ACTS = ("drain", "start", "property", "carry", "window", "window, carry", "disable")


@dataclass
class Amid(Life):
    """A life of a trigger and a spread whose acts all come soon after a nominal instant."""

    trigger: str = "each"
    shape: dict[str, Any] | None = None

    def deploy(self) -> None:
        self.expression, self.jitter, self.spread = EXPRESSION, JITTER, self.shape
        self.catch_up, self.coalesce = "all", False
        super().deploy()

    def document(self, **more: Any) -> dict[str, Any]:
        return {**super().document(**more), **TRIGGERS[self.trigger]}

    def count(self) -> None:
        if self.trigger != "once":
            super().count()
        elif self.since is not None:
            self.expected += self.events * (self.since < FIRE <= self.now)
            self.since = self.now

    def _do(self, what: str, span: str) -> None:
        if what == "start":
            what = "enable" if self.state.mode == "disabled" else "resume"
        if not what.startswith(("fewer", "window")):
            return super()._do(what, span)
        assert self.spread is not None
        over = {"3s": "10m"}.get(self.spread.get("over", ""), "3s")
        other = {"count": self.spread["count"] - 1} if what.startswith("fewer") else {"over": over}
        self.spread = {**self.spread, **other}
        self.properties += 1
        return self.world.put(NAME, self.document(on_update="carry" if what.endswith("carry") else "drop"))

    def wait(self, span: Millis) -> None:
        if span:
            self.act("pass", f"{span}ms")

    def end(self) -> None:
        if self.state.mode == "drain":
            self.act("resume")
        self.act("pass", "1h")
        self.act("disable")
        self.act("pass", "5m")


def due_of(trigger: str) -> Instant:
    """When the first event of the fire is due."""
    return TimeTrigger.model_validate(TRIGGERS[trigger]["trigger"]).jittered(NOON, FIRE, f"{full(NAME)}#0")


def _check(trigger: str, shape: dict[str, Any] | None, begin: int, offset: Millis, acts: tuple[str, ...]) -> None:
    life = Amid(0, trigger=trigger, shape=shape)
    of, lead = STARTS[begin]
    life.wait((FIRE if of == "nominal" else due_of(trigger)) + lead - life.now)
    for act in acts:
        life.act(act)
        life.wait(offset)
    life.end()
    assert life.problems() == [], "\n".join([f"{trigger}, {shape}", *life.said])


ORDERS = [
    (trigger, shape, begin, offset, acts)
    for acts, trigger, shape, begin, offset in product(
        product(ACTS, repeat=3), TRIGGERS, SPREADS, range(len(STARTS)), OFFSETS
    )
    if shape or "window" not in " ".join(acts)
][::23]


@pytest.mark.parametrize("order", every(23, range(len(ORDERS))))
def test_l6_no_event_of_a_fire_that_lasts_is_lost(order: int) -> None:
    _check(*ORDERS[order])


@pytest.mark.parametrize(
    ("trigger", "shape", "acts"),
    [
        ("ends", {"count": 7}, ("window", "property", "window, carry", "property")),
        ("each", {"count": 4, "over": "15m"}, ("window, carry", "window, carry", "start", "property")),
        ("each", {"count": 4, "over": "15m"}, ("property", "window", "window, carry", "disable")),
        ("once", {"count": 20, "over": "10m"}, ("window, carry", "window, carry", "drain", "start")),
    ],
)
def test_l6_a_carried_window_moves_no_prepared_event(trigger: str, shape: Any, acts: tuple[str, ...]) -> None:
    """An event that is a job runs at the instant at which it was prepared, and no later update prepares it again."""
    for begin, offset in product(range(len(STARTS)), OFFSETS):
        _check(trigger, shape, begin, offset, acts)


FEWER = [
    (trigger, shape, begin, offset, acts)
    for acts, trigger, shape, begin, offset in product(
        product((*ACTS, "fewer, carry"), repeat=3), TRIGGERS, SPREADS[1:], range(PREPARED, len(STARTS)), OFFSETS
    )
    if "fewer, carry" in acts
][::29]


@pytest.mark.parametrize("order", every(23, range(len(FEWER))))
def test_l6_a_fire_keeps_its_count_of_events(order: int) -> None:
    """It is prepared when an update lowers the count. After ``on_update: drop`` what it has no longer is on record."""
    _check(*FEWER[order])


UPDATES = [  # a fire without a spread has one event
    (shape, update)
    for shape, update in product(SPREADS, ("property", "carry", "fewer", "fewer, carry"))
    if shape or not update.startswith("fewer")
]


@pytest.mark.parametrize("number", range(len(UPDATES)))
@pytest.mark.parametrize("offset", OFFSETS)
def test_l6_an_update_after_a_drain_loses_no_event(number: int, offset: Millis) -> None:
    """The drain put on record what was not prepared, and the resume began the timer anew: an update prepares none of
    the events again that wait as jobs. Each update plays a third of the triggers and starts."""
    shape, update = UPDATES[number]
    for trigger, begin in [*product(TRIGGERS, range(len(STARTS)))][number % 3 :: 3]:
        _check(trigger, shape, begin, offset, ("drain", "resume", update))
