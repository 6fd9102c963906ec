"""The results of the outages as tables of a document: `python -m tests.faults.outage_table --write <document>`.

With ``--pairs`` the table of pairs is written as well, which takes some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

from tests.faults.outages import BEFORE, SHIFT, Platform, Result, outage_of, played
from tests.faults.services import SERVICES, THROTTLED

NAMES = {
    "dynamodb": "DynamoDB",
    "sqs": "SQS",
    "s3": "S3",
    "emr": "EMR Serverless",
    "eventbridge": "EventBridge",
    "lambda": "Lambda",
    "stream": "the lake's stream",
}
SINGLES = [*((name, "unavailable") for name in SERVICES), *((name, "throttled") for name in THROTTLED)]
PAIRS = list(combinations(SERVICES, 2))
HEAD = (
    "down for an hour",
    "fires late",
    "latest message",
    "latest Spark start",
    "latest data",
    "history behind",
    "the API answers",
    "caught up after",
)


@cache
def of_single(service: str, how: str) -> tuple[Platform, Result]:
    return played(outage_of(service, how))


@cache
def of_pair(first: str, second: str) -> tuple[Platform, Result]:
    """The second outage begins half an hour after the first, and outlasts it."""
    return played(outage_of(first), outage_of(second, since=BEFORE + SHIFT))


def singles() -> str:
    return _table([(f"{NAMES[name]}, {how}", of_single(name, how)) for name, how in SINGLES])


def pairs() -> str:
    return _table([(f"{NAMES[one]}, then {NAMES[two]}", of_pair(one, two)) for one, two in PAIRS])


def _table(rows: Sequence[tuple[str, tuple[Platform, Result]]]) -> str:
    """A row for each outage. An outage that loses anything is in no table."""
    lines = [_line(HEAD), f"|{'---|' * len(HEAD)}"]
    for name, (platform, each) in rows:
        platform.check()
        late = f"{each.late} of {each.fires}" if each.late else "none"
        spans = [_span(span) for span in (each.worst, each.spark_worst, each.data_worst, each.history_worst)]
        lines.append(_line([name, late, *spans, each.refused or "as ever", _span(each.recovery)]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _span(minutes: int) -> str:
    return f"{minutes} min" if minutes > 1 else "1 min" if minutes else "at once"


def marks(name: str) -> tuple[str, str]:
    return f"<!-- outages of {name}: begin -->", f"<!-- outages of {name}: end -->"


def within(text: str, name: str) -> str:
    """The part of a document between the marks of a table."""
    begin, end = marks(name)
    return text.partition(begin)[2].partition(end)[0].strip()


def written(text: str, name: str, table: str) -> str:
    begin, end = marks(name)
    head, found, rest = text.partition(begin)
    if not found or end not in rest:
        raise ValueError(f"expected the marks {begin} and {end}, got a document without them")
    return f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--pairs", action="store_true")
    asked = parser.parse_args()
    text = written(asked.write.read_text(), "one service", singles())
    if asked.pairs:
        text = written(text, "two services", pairs())
    asked.write.write_text(text)


if __name__ == "__main__":
    main()
