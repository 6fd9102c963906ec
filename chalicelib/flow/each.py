"""Do something to each of many, so that one that fails harms none of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def run_each(things: Iterable[T], act: Callable[[T], object]) -> int:
    """Act on each; returns how many went well. What some raised is raised together, after all had their turn."""
    failed: list[Exception] = []
    done = 0
    for thing in things:
        try:
            act(thing)
            done += 1
        except Exception as error:  # told below, with all others
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {done + len(failed)} failed", failed)
    return done
