"""Apply a step to many things; one failure does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from chalicelib.core.writes import Write
from chalicelib.ports import Ports

T = TypeVar("T")


def run_each(things: Iterable[T], act: Callable[[T], object]) -> int:
    """Act on each thing. Returns how many succeeded; raises an ExceptionGroup of all errors after the last one."""
    failed: list[Exception] = []
    done = 0
    for thing in things:
        try:
            act(thing)
            done += 1
        except Exception as error:  # raised below, together with the others
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {done + len(failed)} failed", failed)
    return done


def committed(ports: Ports, writes: Sequence[Write]) -> Sequence[Write]:
    """Commit writes in one transaction, without those whose conditions fail. Returns what was written."""
    while writes and (refused := ports.ledger.commit(writes)) is not None:
        writes = [write for write in writes if write not in refused.writes]
    return writes
