"""The search for the highest rate that holds, and what is said about it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import burst, sustained
from benchmarks.page import page
from benchmarks.peers import fire, play, stores
from benchmarks.progress import Progress
from benchmarks.sustained import Scheduler
from benchmarks.sustained.search import CONFIRMATIONS, LIMIT_MS, TOLERANCE, Bounds, Probe, Search, highest
from benchmarks.target_queue import Arrival
from chalicelib.core.definitions.schedule import NewSchedule

BOUNDS = Bounds(start=32, most=4_096, probe_s=2, confirm_s=7)
IN_TIME = {"p50": 10, "p99": 20, "max": 30}


def probe(rate: int, seconds: int, *, holds: bool) -> Probe:
    late = IN_TIME if holds else {"p50": 900, "p99": LIMIT_MS, "max": 2_000}
    return Probe(rate, seconds, rate * seconds, late)


class Fake:
    """A scheduler that holds every rate up to one, and another one in a long probe."""

    def __init__(self, short: int, long: int | None = None) -> None:
        self.most = {BOUNDS.probe_s: short, BOUNDS.confirm_s: short if long is None else long}
        self.played: list[tuple[int, int]] = []

    def __call__(self, rate: int, seconds: int) -> Probe:
        self.played.append((rate, seconds))
        return probe(rate, seconds, holds=rate <= self.most[seconds])


def searched(fake: Fake, bounds: Bounds = BOUNDS) -> Search:
    return highest(bounds, fake, lambda search: None)


def test_a_rate_is_doubled_bisected_and_confirmed_once() -> None:
    fake = Fake(100)
    found = searched(fake).found()
    assert [rate for rate, seconds in fake.played if seconds == BOUNDS.probe_s] == [32, 64, 128, 91, 108, 99]
    assert [one for one in fake.played if one[1] == BOUNDS.confirm_s] == [(99, 7)]
    assert found is not None and found.per_second == 99


@pytest.mark.parametrize("most", [*range(1, 70), 100, 333, 1_000, 3_999])
def test_what_is_found_holds_and_a_tenth_more_does_not(most: int) -> None:
    search = searched(Fake(most))
    assert search.high is not None and search.low <= most < search.high
    assert search.high <= TOLERANCE * search.low or search.high == search.low + 1
    assert len(search.probes) <= 16


def test_a_scheduler_that_holds_nothing_has_no_rate() -> None:
    fake = Fake(0)
    search = searched(fake)
    assert [rate for rate, _ in fake.played] == [32, 16, 8, 4, 2, 1]
    assert search.found() is None
    assert sustained.entry(search) | {"probes": []} == {
        "per_second": 0,
        "at_least": False,
        "failed": 1,
        "seconds": BOUNDS.confirm_s,
        "lateness_ms": None,
        "doubled": 0,
        "probes": [],
        "confirmations": [],
    }


def test_the_highest_rate_that_is_tried_is_a_lower_bound() -> None:
    fake = Fake(10_000)
    found = sustained.entry(searched(fake, replace(BOUNDS, most=100)))
    assert fake.played == [(32, 2), (64, 2), (100, 2), (100, 7)]
    assert (found["per_second"], found["at_least"], found["failed"]) == (100, True, None)


def test_a_rate_that_does_not_hold_for_long_is_lowered() -> None:
    fake = Fake(100, 85)
    search = searched(fake)
    assert [rate for rate, seconds in fake.played if seconds == BOUNDS.confirm_s] == [99, 90, 82]
    assert sustained.entry(search)["per_second"] == 82
    assert sustained.entry(search)["failed"] == 90
    gives_up = Fake(100, 10)
    assert searched(gives_up).found() is None
    assert len([one for one in gives_up.played if one[1] == BOUNDS.confirm_s]) == CONFIRMATIONS
    slowest = Fake(1, 0)
    assert searched(slowest).found() is None
    assert slowest.played[-2:] == [(1, BOUNDS.probe_s), (1, BOUNDS.confirm_s)]


@pytest.mark.parametrize(
    ("one", "holds"),
    [
        (Probe(10, 2, 20, IN_TIME), True),
        (Probe(10, 2, 20, IN_TIME, doubled=3), True),
        (Probe(10, 2, 19, IN_TIME), False),
        (Probe(10, 2, 20, IN_TIME | {"p99": LIMIT_MS}), False),
        (Probe(10, 2, 20, IN_TIME | {"p99": LIMIT_MS - 1, "max": 9_000}), True),
        (Probe(10, 2, 5, None), False),
    ],
)
def test_a_rate_holds_if_all_come_and_few_are_late(one: Probe, holds: bool) -> None:
    assert one.holds is holds
    assert json.loads(json.dumps(one.as_json()))["holds"] is holds


def test_the_rest_of_a_search_is_estimated() -> None:
    seen: list[list[tuple[int, int]]] = []
    highest(BOUNDS, Fake(100), lambda search: seen.append(search.left()))
    assert seen[-1] == [(99, BOUNDS.confirm_s)]
    # Once a rate has failed, the number of probes is known.
    assert [len(left) for left in seen[3:]] == [4, 3, 2, 1]
    assert all(left[-1][1] == BOUNDS.confirm_s for left in seen)
    search = Search(BOUNDS)
    assert search.left()[0] == (32, BOUNDS.probe_s)


def measured(fakes: dict[str, Fake]) -> tuple[list[dict[str, Any]], list[str]]:
    """What is found for some schedulers, and the lines of the progress."""

    def player(fake: Fake) -> Any:
        def played(rate: int, seconds: int, progress: Progress) -> Probe:
            progress("arrived", 1, 2)
            return fake(rate, seconds)

        return played

    lines: list[str] = []
    schedulers = [Scheduler(name, player(fake), lambda jobs: 10) for name, fake in fakes.items()]
    return sustained.of_all(schedulers, BOUNDS, Progress("sustained", lines.append, lambda: 0.0)), lines


def test_each_scheduler_has_an_entry_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.progress.EVERY_S", 0.0)
    found, lines = measured({"ours": Fake(100), "other": Fake(40)})
    assert [(one["name"], one["per_second"]) for one in found] == [("ours", 99), ("other", 38)]
    assert all(one["commit"] and one["date"] for one in found)
    # Three rates to come with 3 s and one with 8 s, each stored 10 s before. The other one is taken to be as long.
    about = "sustained: ours (1 of 2): probe 4, 91 a second for 2 s: arrived, 1 of 2; 0 s so far, about 114 s left"
    assert about in lines


def test_a_scheduler_that_stores_too_slowly_is_named() -> None:
    class Slow(Fake):
        def __call__(self, rate: int, seconds: int) -> Probe:
            raise RuntimeError("expected the peer to have stored 64 jobs by their instant:\nTraceback")

    found, _ = measured({"slow": Slow(1), "other": Fake(40)})
    results = {"sustained": {"left_out": {"Huey, Redis": "redis-server"}, "schedulers": found}}
    assert sustained.over_budget(results) == [f"slow: {found[0]['error']}"]
    assert "per_second" not in found[0]
    assert (
        page("<!-- sustained -->\n<!-- end -->", results)
        .splitlines()[3]
        .startswith("| slow | not measured: expected the peer to have stored 64 jobs by their instant: |  |")
    )


def test_the_tables_have_a_row_for_each_scheduler() -> None:
    found, _ = measured({"ours": Fake(100, 95), "other": Fake(10_000)})
    for one in found:
        one |= {"date": "2026-11-27T00:00:00+00:00", "load": 0.5}
    results = {"sustained": {"left_out": {}, "schedulers": found}}
    lines = page("<!-- sustained -->\n<!-- end -->", results).splitlines()
    assert lines[3] == "| ours | 90 | 7 | 10 | 20 | 30 | 0 | 99 | 8 | 2026-11-27 | 0.5 |"
    assert lines[4] == "| other | at least 4,096 | 7 | 10 | 20 | 30 | 0 |  | 9 | 2026-11-27 | 0.5 |"
    assert [table.row_count for table in sustained.tables(results)] == [2]
    assert sustained.over_budget(results) == []
    assert "Not measured yet." in page("<!-- sustained -->\n<!-- end -->", {})


def test_some_schedulers_are_chosen_by_parts_of_their_names() -> None:
    names = ("Sluice, local cloud", "Huey, SQLite", "Huey, Redis")
    every = [Scheduler(name, lambda rate, seconds, progress: Probe(rate, seconds, 0, None), int) for name in names]
    assert sustained.chosen(every, ()) == every
    assert sustained.chosen(every, ("sqlite", "sluice")) == every[:2]
    with pytest.raises(SystemExit, match="expected parts of Sluice, local cloud; Huey, SQLite; .*, got huye"):
        sustained.chosen(every, ("huey", "huye"))


def test_the_others_keep_their_results() -> None:
    kept = [{"name": "ours", "per_second": 1}, {"name": "other", "per_second": 2}]
    assert sustained.merged(kept, [{"name": "new", "per_second": 4}, {"name": "ours", "per_second": 3}]) == [
        {"name": "ours", "per_second": 3},
        {"name": "other", "per_second": 2},
        {"name": "new", "per_second": 4},
    ]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sustained, "time", clock)
    return clock


@pytest.mark.parametrize(
    ("at_last", "each_second", "arrived", "ends"),
    [
        (50, 25, 100, 2),  # all come after the last instant, and most may still be in time
        (98, 0, 98, 2),  # so few that the p99 cannot be in time
        (99, 0, 99, 31),  # one of a hundred may be late, but not for ever
        (100, 0, 100, 0),
    ],
)
def test_what_comes_too_late_is_not_waited_for(
    clock: Clock, at_last: int, each_second: int, arrived: int, ends: int
) -> None:
    last = clock.now

    def count() -> int:
        return min(100, at_last + round((clock.now - last) * each_second))

    found = sustained.all_or_late(count, 100, last, 1.0, quiet())
    assert (found, clock.now - last) == (arrived, ends)


def quiet() -> Progress:
    return Progress("sustained", list[str]().append)


# Three jobs a second: for a second that does not count, in which each is late, and for two that do.
FIRST = 2_000
DUE = fire.jobs_of(FIRST, 9, 3)
LATE = [5_000] * 3 + [20] * 6


@pytest.fixture(autouse=True)
def _one_second_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sustained, "WARM_S", 1)


def arrivals(*missing: int) -> list[Arrival]:
    kept = (one for one in zip(DUE, LATE, strict=True) if one[0][0] not in missing)
    return [Arrival(str(number), due, due + late) for (number, due), late in kept]


IN_20_MS = dict.fromkeys(IN_TIME, 20)


@pytest.mark.parametrize(
    ("came", "found"),
    [
        (arrivals(), Probe(3, 2, 6, IN_20_MS)),
        (arrivals(0), Probe(3, 2, 5, IN_20_MS)),
        (arrivals(8), Probe(3, 2, 5, IN_20_MS)),
        ([*arrivals(), *arrivals()], Probe(3, 2, 6, IN_20_MS, doubled=9)),
        (arrivals(3, 4, 5, 6, 7, 8), Probe(3, 2, 0, None)),
    ],
)
def test_the_first_seconds_count_only_as_fires_that_came(came: list[Arrival], found: Probe) -> None:
    assert sustained.probe_of(3, 2, came, FIRST * 1000) == found


def test_a_probe_of_a_peer_counts_its_fires(clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the file of its fires, of which one is early. With too few of them, their lateness is not told."""
    file, given = tmp_path / "fired", list[tuple[int, int]]()

    class Firing:
        def __enter__(self) -> play.Fires:
            return play.Fires(file, FIRST, {})

        def __exit__(self, *error: object) -> None:
            file.unlink()

    def firing(
        peer: play.Peer, among: play.Installed, jobs: int, per_second: int, environment: Any, progress: Progress
    ) -> Firing:
        given.append((jobs, per_second))
        return Firing()

    monkeypatch.setattr(sustained, "firing", firing)
    scheduler = sustained.of_peer(play.PEERS[0], play.Installed(tmp_path, {"redis": stores.Server("", 1)}))
    lines = [f"{number} {due} {due + late}\n" for (number, due), late in zip(DUE, [*LATE[:-1], -7], strict=True)]
    file.write_text("".join(lines))
    assert scheduler.play(3, 2, quiet()) == Probe(3, 2, 6, {"p50": 20, "p99": 20, "max": 20})
    file.write_text("".join(lines[:4]))
    assert scheduler.play(3, 2, quiet()) == Probe(3, 2, 1, None)
    assert given == [(9, 3), (9, 3)]
    assert scheduler.ahead_s(3_000) == play.AHEAD_S + 10


class Queue:
    """A target with some messages. Called for one of the queues, it has those of the seconds whose turn that is."""

    def __init__(self, messages: list[Arrival]) -> None:
        self._messages = messages

    def __call__(self, client: object, name: str) -> Queue:
        turn = int(name.rpartition("-")[2])
        return Queue([one for one in self._messages if (one.nominal_at // 1000 - FIRST) % sustained.QUEUES == turn])

    def workflow(self) -> dict[str, Any]:
        return {}

    def count(self) -> int:
        return len(self._messages)

    def drain(self) -> list[Arrival]:
        return self._messages


@pytest.mark.parametrize(("missing", "late"), [((), IN_20_MS), ((8,), None)])
def test_a_probe_of_ours_counts_its_messages(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, missing: tuple[int, ...], late: dict[str, int] | None
) -> None:
    clock.now = FIRST - sustained.our_ahead_s(9)
    faked(monkeypatch, Queue(arrivals(*missing)), clock, took_s=5)
    assert sustained.play_ours(3, 2, quiet()) == Probe(3, 2, 6 - len(missing), late)
    assert clock.now >= FIRST


def test_schedules_that_are_stored_too_late_are_no_probe(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch, Queue([]), clock, took_s=20)
    with pytest.raises(RuntimeError, match="expected 9 schedules to be stored within 5 s"):
        sustained.play_ours(3, 2, quiet())


def faked(monkeypatch: pytest.MonkeyPatch, queue: Queue, clock: Clock, took_s: float) -> None:
    """No cloud, and schedules that are stored in so many seconds."""

    def spread_out(
        cloud: object, per_second: int, seconds: int, ahead_s: int, stored: Any, workflows: tuple[str, ...]
    ) -> int:  # fmt: skip
        assert len(workflows) == sustained.QUEUES
        first = round((clock.now + ahead_s) * 1000)
        clock.sleep(took_s)
        stored(per_second * seconds)
        return first

    monkeypatch.setattr(sustained, "own_cloud", contextlib.nullcontext)
    monkeypatch.setattr(sustained, "deploy", lambda cloud, app: None)
    monkeypatch.setattr(sustained, "TargetQueue", queue)
    monkeypatch.setattr(sustained.steady, "spread_out", spread_out)


def test_the_schedules_of_a_rate_are_valid_and_stored_ahead() -> None:
    jobs = BOUNDS.most * sustained.BOUNDS.confirm_s
    ahead = sustained.our_ahead_s(jobs)
    assert ahead - sustained.steady.AHEAD_S > jobs / sustained.STORED_PER_S
    assert NewSchedule.model_validate(burst.shot("deliver", ahead)).enabled
