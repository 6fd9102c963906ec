"""The figures of docs/lifecycle.md, made from the tables of chalicelib/core/states.py.

python -m docs.pictures.states        writes them between their markers

`tests/test_docs.py` fails when the page and the code say different things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import get_args

from chalicelib.core import states
from chalicelib.core.rows.run import RecordKind
from chalicelib.core.states import GATHERING_MODES, PAUSED_MODES, JobKind, Mode

PAGE = Path(__file__).parents[1] / "lifecycle.md"
MODES: tuple[Mode, ...] = get_args(states.Mode)
KINDS: tuple[JobKind, ...] = get_args(states.JobKind)
LIVING: tuple[Mode, ...] = tuple(mode for mode in MODES if mode != "deleted")
_RUNNING: tuple[Mode, ...] = ("enabled", *PAUSED_MODES)

# Where a user action takes a schedule from each mode that allows it; from any other it is refused. The rules are in
# flow/schedules.py and flow/pauses.py; tests/docs/test_modes.py tries every action in every mode.
MOVES: Mapping[str, Mapping[Mode, Mode]] = {
    "enable": dict.fromkeys(LIVING, "enabled"),
    "resume": {**dict.fromkeys(_RUNNING, "enabled"), "completed": "completed"},
    **{paused: dict.fromkeys(_RUNNING, paused) for paused in PAUSED_MODES},
    "disable": dict.fromkeys(LIVING, "disabled"),
    "delete": dict.fromkeys(LIVING, "deleted"),
}


def figures() -> dict[str, str]:
    """Each figure by the name of its marker."""
    return {
        "modes": modes(),
        "mode meanings": mode_meanings(),
        "job states": jobs(),
        "run states": runs(),
        "run meanings": meanings(),
    }


def modes() -> str:
    """How a schedule goes from mode to mode; the paused ones are drawn as one."""
    lines = ["stateDiagram-v2", "    [*] --> disabled: put", "    [*] --> enabled: put with enabled true"]
    lines += ["    state paused {", *(f"        {mode}" for mode in PAUSED_MODES), "    }"]
    lines += [f"    {move}" for move in dict.fromkeys(_drawn())]
    lines += ["    enabled --> completed: the last fire", "    deleted --> [*]"]
    return _mermaid(lines)


def _drawn() -> Iterable[str]:
    """The moves with a name that says enough: pausing is one action, and enabling what is paused is resuming it."""
    for action, ways in MOVES.items():
        word = "pause" if action in PAUSED_MODES else action
        for old, new in ways.items():
            before, after = _group(old), _group(new)
            if before != after and (word, before) != ("enable", "paused"):
                yield f"{before} --> {after}: {word}"


def _group(mode: Mode) -> str:
    return "paused" if mode in PAUSED_MODES else mode


def mode_meanings() -> str:
    """What goes on in each mode. Fires are prepared where events gather."""
    rows = [
        "| mode | events gather, fires are prepared | jobs that may be claimed | claimed before, may still start |",
        "|---|---|---|---|",
    ]
    for mode in MODES:
        claimed = _kinds(kind for kind in KINDS if mode in states.CLAIMABLE[kind])
        started = _kinds(kind for kind in KINDS if states.may_start(kind, mode))
        rows.append(f"| {mode} | {'yes' if mode in GATHERING_MODES else 'no'} | {claimed} | {started} |")
    return "\n".join(rows)


def _kinds(found: Iterable[JobKind]) -> str:
    kinds = tuple(found)
    return "all" if kinds == KINDS else ", ".join(f"`{kind}`" for kind in kinds) or "none"


def jobs() -> str:
    """A job moves down the list of its states, may be thrown back one, and may leave from each of them."""
    names = get_args(states.JobState)
    lines = ["stateDiagram-v2", f"    [*] --> {names[0]}: first event", f"    [*] --> {names[1]}: fire, run now, retry"]
    lines += [f"    {old} --> {new}" for old, new in pairwise(names)]
    lines += [
        f"    {names[1]} --> {names[0]}: undone by an event",
        f"    {names[2]} --> {names[1]}: must wait for the clock",
    ]
    lines += [f"    {name} --> run: claimed" for name in names]
    lines += [f"    {name} --> record: out" for name in names]
    lines += ["    run --> [*]", "    record --> [*]"]
    return _mermaid(lines)


def runs() -> str:
    lines = ["stateDiagram-v2", "    [*] --> STARTING: claim"]
    for old, moves in states.RUN_MOVES.items():
        lines += [f"    {old} --> {new}" for new in moves] or [f"    {old} --> [*]"]
        if moves and states.is_terminal(old):
            lines.append(f"    {old} --> [*]")
    return _mermaid(lines)


def meanings() -> str:
    """What a run's state means to other schedules, and which states of EMR Serverless it stands for."""
    rows = ["| run | over | program status | EMR Serverless |", "|---|---|---|---|"]
    for name in states.RUN_MOVES:
        over = "yes" if states.is_terminal(name) else "no"
        elsewhere = " ".join(emr for emr, ours in states.EMR_STATE.items() if ours == name) or "-"
        rows.append(f"| {name} | {over} | {states.PROGRAM_STATUS.get(name, '-')} | {elsewhere} |")
    return "\n".join(rows)


def records() -> tuple[str, ...]:
    """The kinds of records; the page has a row for each."""
    return get_args(RecordKind)


def with_figures(text: str) -> str:
    """The page with every figure as the code has it."""
    for name, figure in figures().items():
        block = f"<!-- {name} -->\n{figure}\n<!-- end -->"
        text, found = re.subn(rf"<!-- {name} -->.*?<!-- end -->", block.replace("\\", r"\\"), text, flags=re.S)
        if found != 1:
            raise ValueError(f"expected one place for the figure {name!r} in {PAGE.name}, found {found}")
    return text


def _mermaid(lines: list[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])


if __name__ == "__main__":
    PAGE.write_text(with_figures(PAGE.read_text()))
