"""The figures of docs/lifecycle.md, made from the tables of chalicelib/core/states.py.

python -m docs.pictures.states        writes them between their markers

`tests/test_docs.py` fails when the page and the code say different things.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

from chalicelib.core import states

PAGE = Path(__file__).parents[1] / "lifecycle.md"


def figures() -> dict[str, str]:
    """Each figure by the name of its marker."""
    return {"job states": jobs(), "run states": runs(), "run meanings": meanings()}


def jobs() -> str:
    """A job moves down the list of its states, and may leave from each of them."""
    names = get_args(states.JobState)
    lines = ["stateDiagram-v2", f"    [*] --> {names[0]}: first event", f"    [*] --> {names[1]}: fire, run now, retry"]
    lines += [f"    {old} --> {new}" for old, new in pairwise(names)]
    lines += [f"    {name} --> run: claimed" for name in names]
    lines += [f"    {name} --> record: aborted, dropped, coalesced" for name in names]
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


def with_figures(text: str) -> str:
    """The page with every figure as the code has it."""
    for name, figure in figures().items():
        block = f"<!-- {name} -->\n{figure}\n<!-- end -->"
        text, found = re.subn(rf"<!-- {name} -->.*?<!-- end -->", lambda _, block=block: block, text, flags=re.S)
        if found != 1:
            raise ValueError(f"expected one place for the figure {name!r} in {PAGE.name}, found {found}")
    return text


def _mermaid(lines: list[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])


if __name__ == "__main__":
    PAGE.write_text(with_figures(PAGE.read_text()))
