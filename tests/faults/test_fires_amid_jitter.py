"""Acts of a user between the nominal instant of a fire and the instants at which its events are due (T4, L4, L6).

Jitter, and windows, make a fire last for minutes. In that time some of its events are jobs, and the timer has the
others. Each order of drains, resumes, updates and disables must leave each event with one run or one record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import pytest

from chalicelib.core.instants import MINUTE, SECOND, Millis
from tests.faults.fire_world import NAME, NOON, Life
from tests.support.samples import every

FIRE = NOON + 20 * MINUTE
SPREADS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"count": 4, "over": "15m"},
    {"count": 7},
    {"count": 30, "over": "5s"},
)
# Each span is from the act before, or from the nominal instant: in the same millisecond, or within the jitter.
OFFSETS: tuple[Millis, ...] = (0, SECOND, 50 * SECOND)
# A fire has as many events by another window, so that all of them can be counted.
ACTS = ("drain", "resume", "property", "carry", "window", "window, carry", "disable", "enable")


@dataclass
class Amid(Life):
    """A life whose acts all come soon after a nominal instant. The seed decides how late its events are due."""

    jitters: ClassVar[tuple[Any, ...]] = ("6m",)
    expressions: ClassVar[tuple[str, ...]] = ("0 */20 * * * *",)
    shape: dict[str, Any] | None = None

    def deploy(self) -> None:
        self.spread, self.catch_up, self.coalesce = self.shape, "all", False
        super().deploy()

    def _do(self, what: str, span: str) -> None:
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


def _check(seed: int, shape: dict[str, Any] | None, offset: Millis, acts: tuple[str, ...]) -> None:
    life = Amid(seed, shape=shape)
    life.wait(FIRE - life.now)
    for act in acts:
        life.wait(offset)
        life.act(act)
    life.end()
    assert life.problems() == [], "\n".join([f"{shape}, seed {seed}", *life.said])


ORDERS = [
    (seed, shape, offset, acts)
    for seed, (shape, offset, acts) in enumerate(product(SPREADS, OFFSETS, product(ACTS, repeat=3)))
    if shape or "window" not in " ".join(acts)
]


@pytest.mark.parametrize("order", every(97, range(len(ORDERS))))
def test_l6_no_event_of_a_fire_that_lasts_is_lost(order: int) -> None:
    _check(*ORDERS[order])


@pytest.mark.parametrize("shape", SPREADS)
@pytest.mark.parametrize("update", ["property", "carry", "fewer", "fewer, carry"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_l6_an_update_after_a_drain_loses_no_prepared_fire(shape: Any, update: str, offset: Millis) -> None:
    """The drain put on record what was not prepared, and the resume began the timer anew: an update prepares none of
    the events again that wait as jobs."""
    for seed in range(2):
        _check(seed, shape, offset, ("drain", "resume", update if shape else update.replace("fewer", "property")))
