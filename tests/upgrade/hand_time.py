"""The module `time` of the copied trees: the clock of the account that is in use."""

from __future__ import annotations

from tests.upgrade import account


def time_ns() -> int:
    return account.current().clock.now() * 1_000_000


def monotonic() -> float:
    return account.current().clock.now() / 1000


def sleep(seconds: float) -> None:
    clock = account.current().clock
    clock.wait_until(clock.now() + max(1, round(seconds * 1000)))
