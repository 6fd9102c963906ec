"""What the answers to wrong inputs say: 0 to 3 points each, counted by plain rules.

    python -m tests.wrong_inputs.scorecard            # print the scorecard
    python -m tests.wrong_inputs.scorecard --write    # write it into docs/internals/answers.md

An answer gets one point for each of these:

- **expected**: it says what is right: ``expected ...``, or ``did you mean ...``, or that nothing has the name;
- **got**: it repeats what it got: after ``got``, or in quotes;
- **what to do**: it has a hint.

An answer with several problems gets the points of the worst of them. A traceback gets none.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.wrong_inputs.pages import Example, all_examples

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "answers.md"
BEGIN, END = "<!-- scorecard -->\n", "<!-- end of the scorecard -->"
_EXPECTED = re.compile(r"\bexpected \S|\bdid you mean \S|\bno [\w -]+ named \S|\bthe fields are \S")
_GOT = re.compile(r"\bgot \S|'[^']+'")


@dataclass(frozen=True, slots=True)
class Score:
    expected: bool
    got: bool
    to_do: bool

    @property
    def points(self) -> int:
        return self.expected + self.got + self.to_do


def score(answer: str) -> Score:
    """The points of an answer: for each rule, whether every problem of the answer has it."""
    problems = _problems(answer)
    if not problems or "Traceback" in answer or "SLUICE_TRACEBACK" in answer:
        return Score(False, False, False)
    return Score(
        all(_EXPECTED.search(f"{message}\n{hint}") for message, hint in problems),
        all(_GOT.search(message) for message, _ in problems),
        all(hint for _, hint in problems),
    )


def _problems(answer: str) -> list[tuple[str, str]]:
    """The message and the hint of each problem, of an answer as text or as JSON."""
    if answer.startswith("{"):
        error = json.loads(answer.splitlines()[0])["error"]
        return [(each["message"], each["hint"] or "") for each in error.get("problems", [error])]
    blocks = re.split(r"^error: ", answer, flags=re.M)[1:]
    return [(block.splitlines()[0], "".join(re.findall(r"^  hint: (.*)", block, flags=re.M))) for block in blocks]


def table(examples: list[Example]) -> str:
    """The scorecard as a table of Markdown: a row for each page, and one for all."""
    rows = ["| page | inputs | expected | got | what to do | points |", "|---|---|---|---|---|---|"]
    groups = {page: [e for e in examples if e.page == page] for page in sorted({e.page for e in examples})}
    rows += [_row(f"`{page}.md`", group) for page, group in groups.items()]
    return "\n".join([*rows, _row("**all**", examples)]) + "\n"


def _row(label: str, examples: list[Example]) -> str:
    scores = [score(example.console) for example in examples]
    answer = [sum(getattr(each, name) for each in scores) for name in ("expected", "got", "to_do")]
    points, most = sum(each.points for each in scores), 3 * len(scores)
    return f"| {label} | {len(scores)} | {answer[0]} | {answer[1]} | {answer[2]} | {points} of {most} |"


def main() -> None:
    examples = all_examples()
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + table(examples) + END + rest.partition(END)[2])
    print(table(examples))
    counts = Counter(score(example.console).points for example in examples)
    print("; ".join(f"{counts[points]} with {points}" for points in (3, 2, 1, 0)))
    for example in examples:
        if score(example.console).points < 3:
            print(f"  {score(example.console).points}  {example.id}")


if __name__ == "__main__":
    main()
