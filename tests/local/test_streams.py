"""The streams of the local cloud are read when no record has come for a while, and again after a failure."""

from __future__ import annotations

from infra.local.streams import PAUSE_S, WINDOW_S, Reader


class Stream:
    """A stream from which each poll takes one record, and the reader of it."""

    def __init__(self) -> None:
        self.now, self.came, self.taken, self.fails = 100.0, 0, 0, False
        self.reader = Reader(self._poll, lambda: self.came, lambda: self.fails, lambda: self.now)

    def _poll(self) -> bool:
        if self.fails or self.taken == self.came:
            return False
        self.taken += 1
        return True

    def look(self, passed: float = 0.0) -> bool:
        self.now += passed
        return self.reader.look()


def test_records_wait_until_no_other_has_come() -> None:
    stream = Stream()
    stream.came = 1
    assert not stream.look()
    stream.came = 2
    assert not stream.look(PAUSE_S * 0.9), "another record came"
    assert not stream.look(PAUSE_S * 0.9)
    assert stream.look(PAUSE_S * 0.2)
    assert stream.look(), "the second record, without another wait"
    assert not stream.look()


def test_records_that_never_pause_wait_for_the_window() -> None:
    stream = Stream()
    waited = 0.0
    stream.came = 1
    while not stream.look():
        stream.came += 1
        stream.now += PAUSE_S / 2
        waited += PAUSE_S / 2
        assert waited <= WINDOW_S + PAUSE_S
    assert waited >= WINDOW_S


def test_records_that_a_lambda_refused_are_read_again() -> None:
    stream = Stream()
    stream.came, stream.fails = 1, True
    stream.look()
    assert not stream.look(PAUSE_S)
    assert stream.taken == 0
    stream.fails = False
    assert stream.look()


def test_an_idle_stream_is_not_read() -> None:
    stream = Stream()
    stream.taken = -1
    assert not stream.look(WINDOW_S * 2)
