"""The progress of measurements: which lines are written, how often, and how long the rest takes."""

from __future__ import annotations

import threading

import pytest

from benchmarks import progress as module
from benchmarks.progress import EVERY_S, REPEATED_S, Progress, spoken


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Heard:
    """A progress with its own clock and the lines that it has written."""

    def __init__(self) -> None:
        self.clock, self.lines = Clock(), list[str]()
        self.progress = Progress("burst", self.lines.append, self.clock)

    def pass_by(self, seconds: float) -> None:
        self.clock.now += seconds


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_a_line_names_the_step_what_is_done_and_the_rest(heard: Heard) -> None:
    for number in heard.progress.each([1, 2, 3], lambda number: f"repetition {number} of 3, Huey"):
        heard.pass_by(EVERY_S)
        heard.progress("arrived", 1_300, 10_000)
        heard.pass_by(15)
        if number == 2:
            break
    assert heard.lines == [
        "burst: repetition 1 of 3, Huey (1 of 3); 0 s so far",
        "burst: repetition 1 of 3, Huey (1 of 3): arrived, 1,300 of 10,000; 5 s so far",
        "burst: repetition 2 of 3, Huey (2 of 3); 20 s so far, about 40 s left",
        "burst: repetition 2 of 3, Huey (2 of 3): arrived, 1,300 of 10,000; 25 s so far, about 35 s left",
    ]


def test_there_is_at_most_one_line_in_a_while(heard: Heard) -> None:
    for done in range(100):
        heard.progress("stored", done, 100)
        heard.pass_by(EVERY_S / 10)
    assert [line.partition(";")[0] for line in heard.lines] == [
        f"burst: stored, {done} of 100" for done in range(0, 100, 10)
    ]


def test_what_was_said_too_soon_is_written_later(heard: Heard) -> None:
    heard.progress("starting")
    heard.progress("waiting")
    heard.progress.look()
    assert heard.lines == ["burst: starting; 0 s so far"]
    heard.pass_by(EVERY_S)
    heard.progress.look()
    assert heard.lines[1:] == ["burst: waiting; 5 s so far"]


def test_a_step_that_waits_shows_that_it_is_alive(heard: Heard) -> None:
    heard.progress("waiting")
    for _ in range(2):
        heard.pass_by(REPEATED_S - 1)
        heard.progress.look()
        heard.pass_by(1)
        heard.progress.look()
    assert heard.lines == [f"burst: waiting; {seconds} s so far" for seconds in (0, 30, 60)]


def test_nothing_is_said_between_steps_and_before_the_first(heard: Heard) -> None:
    heard.progress.look()
    assert heard.lines == []
    assert heard.progress.left_s() is None


def test_steps_of_one_kind_take_as_long_as_those_before(heard: Heard) -> None:
    left = []
    plays = [("ours", 100.0), ("theirs", 10.0), ("ours", 120.0), ("theirs", 30.0), ("ours", 0.0)]
    for _, seconds in heard.progress.each(plays, lambda play: play[0], lambda play: play[0]):
        left.append(heard.progress.left_s())
        heard.pass_by(seconds)
    # After the first step all are as long as it; later those of each kind, by the mean.
    assert left == [None, 400.0, 100 + 10 + 100, 10 + 110, 110.0]


def test_a_step_longer_than_usual_has_nothing_left(heard: Heard) -> None:
    left = []
    for seconds in heard.progress.each([10.0, 50.0], str, lambda _: "same"):
        heard.pass_by(seconds)
        left.append(heard.progress.left_s())
    assert left == [None, 0.0]


def test_a_step_may_say_itself_how_long_it_takes(heard: Heard) -> None:
    left = []
    for _ in heard.progress.each(["a", "b"], str):
        heard.pass_by(5)
        heard.progress.takes(45)
        heard.pass_by(15)
        left.append(heard.progress.left_s())
    # The first estimate has the second step too, of which nothing else is known: 45 s after 5 s.
    assert left == [30 + 50, 30.0]


def test_what_is_not_planned_has_no_estimate(heard: Heard) -> None:
    """Before the first step, between passes and after the last step."""
    left = []
    for passes in (2, 1):
        heard.progress("starting")
        left.append(heard.progress.left_s())
        for _ in heard.progress.each(["a"], str, passes=passes):
            heard.pass_by(10)
    heard.progress("stopping")
    assert [*left, heard.progress.left_s()] == [None, 10.0, None]


def test_the_part_of_a_step_stays_in_its_lines(heard: Heard) -> None:
    with heard.progress.step("Huey"):
        for part in (1, 2):
            heard.progress.part(f"probe {part}")
            heard.pass_by(EVERY_S)
            heard.progress("stored")
            heard.pass_by(EVERY_S)
            heard.progress("arrived")
    said = ["Huey", *(f"Huey: probe {part}: {detail}" for part in (1, 2) for detail in ("stored", "arrived"))]
    assert [line.partition(";")[0] for line in heard.lines] == [f"burst: {text}" for text in said]


def test_several_passes_are_planned_at_once(heard: Heard) -> None:
    left = []
    for passes in (2, 1):
        for name in heard.progress.each(["short", "long"], str, str, passes):
            left.append(heard.progress.left_s())
            heard.pass_by(10 if name == "short" else 90)
    assert left == [None, 10 * 3, 100.0, 90.0]


def test_a_thread_writes_what_nobody_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    monkeypatch.setattr(module, "LOOKED_EVERY_S", 0.001)
    twice, lines = threading.Event(), list[str]()

    def write(line: str) -> None:
        lines.append(line)
        if line.startswith("tick: second"):
            twice.set()

    with Progress("tick", write) as progress:
        progress("first")
        with progress._lock:
            assert progress._step is not None
            progress._step.detail, progress._unsaid = "second", True
        assert twice.wait(30)
    assert not progress._thread.is_alive()


def test_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("tick") as progress:
        progress("1,000 schedules")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "tick: 1,000 schedules; 0 s so far\n")


def test_long_times_are_minutes() -> None:
    assert [spoken(seconds) for seconds in (0.4, 599, 625, 3_700)] == ["0 s", "599 s", "10 min", "62 min"]
