"""The CPU time of product code between two calls to AWS: recorded once into `cpu.json`, and looked up in each run.

So two runs with one seed are equal, on any machine. A segment is named by the function, the call before it, the call
after it, and how many items each has. The numbers of items are grouped by powers of two. A segment that was never
recorded takes the time of the nearest one.

    python -m benchmarks.aws_model --record                  after product code has changed much
    python -m benchmarks.aws_model registration --record     after the API alone has changed much
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

FILE = Path(__file__).with_name("cpu.json")
DEPLOYS = "api deploys"  # invocations of the API that deploy an app
UNKNOWN_MS = 0.5  # a segment between two calls that no recording has in this or another function


class Segment(NamedTuple):
    """A stretch of product code. ``answered`` and ``sent`` are the items of the calls around it."""

    function: str
    before: str
    after: str
    answered: int
    sent: int


class RecordedCpu:
    """The recorded times, in ms of a whole CPU."""

    def __init__(self, recorded: Mapping[str, float]) -> None:
        self._times: dict[Segment, float] = {}
        self._near: dict[tuple[str, ...], list[Segment]] = defaultdict(list)
        for name, milliseconds in recorded.items():
            function, before, after, answered, sent = name.split("|")
            segment = Segment(function, before, after, int(answered), int(sent))
            self._times[segment] = milliseconds
            self._near[function, before, after].append(segment)
            self._near[before, after].append(segment)

    def begin(self) -> None:
        """A segment begins."""

    def end(self, segment: Segment) -> float:
        """A segment ends: its time."""
        grouped = segment._replace(answered=segment.answered.bit_length(), sent=segment.sent.bit_length())
        if grouped not in self._times:
            self._times[grouped] = self._of_nearest(grouped)
        return self._times[grouped]

    def _of_nearest(self, wanted: Segment) -> float:
        names = (wanted.function, wanted.before, wanted.after)
        found = self._near.get(names) or self._near.get(names[1:])
        if not found:
            return UNKNOWN_MS
        return self._times[min(found, key=lambda one: (_distance(one, wanted), one))]


def _distance(one: Segment, other: Segment) -> int:
    return abs(one.answered - other.answered) + abs(one.sent - other.sent)


class RecordingCpu:
    """Measures the time of each segment in its thread. The median is kept: a first import or a busy machine disturbs
    it little. Of a deployment, whose few segments of one name are long or short, the mean is kept, and so their sum."""

    def __init__(self) -> None:
        self._found: dict[Segment, list[float]] = defaultdict(list)
        self._begun = 0.0

    def begin(self) -> None:
        self._begun = time.thread_time()

    def end(self, segment: Segment) -> float:
        spent = (time.thread_time() - self._begun) * 1000
        grouped = segment._replace(answered=segment.answered.bit_length(), sent=segment.sent.bit_length())
        self._found[grouped].append(spent)
        return spent

    def recorded(self, scale: float) -> dict[str, float]:
        """The times by segment, multiplied by a scale."""
        found = sorted(self._found.items())
        middle = {segment: mean(times) if segment.function == DEPLOYS else median(times) for segment, times in found}
        return {"|".join(map(str, segment)): round(scale * spent, 4) for segment, spent in middle.items()}


def load(file: Path = FILE) -> RecordedCpu:
    return RecordedCpu(json.loads(file.read_text())["segments"])


def recorded_at(file: Path = FILE) -> str:
    """When the CPU was recorded: all of it, and that of the API apart."""
    stored = json.loads(file.read_text())
    return " ".join(one["recorded_at"] for one in (stored, stored.get("api", {})) if one)


def save(recording: RecordingCpu, scale: float, about: Mapping[str, object], file: Path = FILE) -> None:
    file.write_text(json.dumps({**about, "segments": recording.recorded(scale)}, indent=0) + "\n")


def save_api(recording: RecordingCpu, scale: float, about: Mapping[str, object], file: Path = FILE) -> None:
    """Replace the times of the API. The file keeps apart when these were recorded."""
    stored = json.loads(file.read_text())
    kept = {name: spent for name, spent in stored["segments"].items() if not name.startswith("api")}
    own = {name: spent for name, spent in recording.recorded(scale).items() if name.startswith("api")}
    stored["api"], stored["segments"] = dict(about), dict(sorted({**kept, **own}.items()))
    file.write_text(json.dumps(stored, indent=0) + "\n")
