"""Silent runs that are asked about together: EMR's listing answers for many at the price of few (W7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalicelib.core import follow
from chalicelib.core.complete import News
from chalicelib.core.rows import Run
from chalicelib.core.sweep import Ref
from chalicelib.flow.alone import each_alone
from chalicelib.flow.complete import take_in
from chalicelib.log import logger
from chalicelib.ports import Ports

FEW = 10  # fewer than these are asked about one by one


def among(ports: Ports, refs: Sequence[Ref]) -> dict[Ref, Run]:
    """Those of these runs that are merely silent, if they are many; whoever owes a status, is to end, or has not
    started yet is looked at alone."""
    runs = [ref for ref in refs if ref.kind == "run"]
    silent = {ref: run for ref in runs if (run := _silent(ports, ref)) is not None} if len(runs) >= FEW else {}
    return silent if len(silent) >= FEW else {}


def ask_together(ports: Ports, silent: Mapping[Ref, Run]) -> frozenset[Ref]:
    """Ask about them, at the pace that EMR bears. Returns those that are seen to."""
    if not silent:
        return frozenset()
    seen: set[Ref] = set()

    def apply(told: tuple[Ref, Run, News | None]) -> None:
        ref, run, news = told
        take_in(ports, run, news)
        seen.add(ref)

    try:
        answers = ports.targets.of(follow.LISTED).ask_many(list(silent.values()))
        each_alone([(ref, run, news) for (ref, run), news in zip(silent.items(), answers, strict=True)], apply)
    except Exception:  # each by itself then, and whoever caused it fails alone
        logger.exception("silent runs", extra={"size": len(silent)})
    return frozenset(seen)


def _silent(ports: Ports, ref: Ref) -> Run | None:
    run = ports.runs.run(ref.parts[0], int(ref.parts[1]))
    return run if run is not None and follow.is_silent(run, ports.clock.now()) else None
