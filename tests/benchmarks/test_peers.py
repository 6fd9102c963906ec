"""The comparison with other schedulers: what is due when, the figures of what was fired, and the stores."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import burst, machine, peers
from benchmarks.page import page
from benchmarks.peers import fire, play, stores
from benchmarks.progress import Progress

DUE = 1_772_500_000
SERVER = stores.Server("redis://127.0.0.1:1/0", 1)
ALL_INSTALLED = play.Installed(Path("python"), {"redis": SERVER, "postgres": SERVER})
LATE = {"p50": 10, "p99": 20, "max": 30}


def one(pace: float, p99: int = 20, **more: Any) -> dict[str, Any]:
    late = LATE | {"p99": p99}
    return {"jobs": 100, "seconds": 1.0, "per_second": pace, "lateness_ms": late, "missed": 0, "doubled": 0, **more}


def test_a_burst_is_due_at_once_a_steady_load_each_second() -> None:
    assert fire.jobs_of(DUE, 3, 0) == [(0, DUE * 1000), (1, DUE * 1000), (2, DUE * 1000)]
    assert [due // 1000 - DUE for _, due in fire.jobs_of(DUE, 36, 12)] == [0] * 12 + [1] * 12 + [2] * 12
    assert [(jobs, per_second) for _, jobs, per_second in peers.loads_of()] == [(burst.JOBS, 0)] * 2 + [(720, 12)]


def test_a_line_that_a_peer_is_writing_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "fired"
    assert list(fire.lines(file)) == []
    file.write_text("0 1000 1010\n1 1000 1020\n2 1000 10")
    assert list(fire.lines(file)) == [(0, 1000, 1010), (1, 1000, 1020)]


def test_missed_doubled_and_early_fires_of_a_peer_are_counted() -> None:
    fires = [(0, 1000, 1010), (1, 1000, 1020), (1, 1000, 1500), (2, 1000, 990)]
    found = play.peer_figures(fires, 4)
    assert (found["missed"], found["doubled"], found["early"]) == (1, 1, 1)
    assert found["lateness_ms"] == {"p50": 10, "p99": 20, "max": 20}
    assert play.peer_figures([], 4)["missed"] == 4


def test_the_figures_are_medians_and_ratios_to_ours() -> None:
    ours = peers.summary(peers.OURS, [one(1_000.0), one(10.0, missed=1), one(2_000.0)])
    theirs = peers.summary("other", [one(500.0, 40), one(400.0, 40), one(600.0, 40)])
    assert (ours["per_second"], ours["least"], ours["most"], ours["missed"]) == (1_000.0, 10.0, 2_000.0, 1)
    found = peers.with_ratios({load: [dict(ours), dict(theirs)] for load in peers.TITLES})
    assert [each["ratio"] for each in found["burst"]] == [1.0, 0.5]
    assert [each["ratio"] for each in found["messages"]] == [1.0, 0.5]
    assert [each["ratio"] for each in found["steady"]] == [1.0, 2.0]


def measured(*loads: str, **about: Any) -> dict[str, Any]:
    """The results of some loads."""
    summed = [peers.summary(name, [one(10.0)]) for name in (peers.OURS, "other")]
    entries = peers.with_ratios({load: [dict(each) for each in summed] for load in loads})
    known = {"repetitions": 1, "loads": [0.5, 0.7], "left_out": {}, **about}
    found = {f"peers_{load}": {**known, "schedulers": of} for load, of in entries.items()}
    return {**found, "origins": {name: {"date": "2026-11-24T00:00:00+00:00"} for name in found}}


def test_the_page_names_what_was_left_out() -> None:
    found = measured(*peers.TITLES, left_out={"Huey, Redis": "redis-server"})
    text = page("<!-- peers_burst -->\n<!-- end -->", found)
    assert "left out: Huey, Redis (no `redis-server`)" in text
    assert "| other | 10 | 10 to 10 | 1.0 | 10 | 20 | 30 | 0 | 0 | 0 |" in text
    assert len(peers.tables(found)) == 6


def test_a_load_that_was_left_out_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "LOADS", ["messages", "burst"])
    assert [load for load, _, _ in peers.loads_of()] == ["burst", "messages"]
    found = measured("burst", "messages")
    assert len(peers.tables(found)) == 4
    assert "Not measured yet." in page("<!-- peers_steady -->\n<!-- end -->", found)


def test_a_burst_of_messages_is_played_once_for_sluice(monkeypatch: pytest.MonkeyPatch) -> None:
    for loads, expected in ((["burst", "messages"], []), (["messages"], [peers.OURS])):
        monkeypatch.setattr(peers, "LOADS", loads)
        players = [name for name, _ in peers._players(ALL_INSTALLED, "messages", 10, 0)]
        assert players == [*expected, *(peer.name for peer in play.PEERS)]


def test_a_peer_whose_program_is_missing_is_left_out() -> None:
    among = play.Installed(Path("python"), {"redis": None, "postgres": SERVER})
    assert [peer.name for peer in among.present] == ["APScheduler, SQLite", "APScheduler, PostgreSQL", "Huey, SQLite"]
    assert among.left_out == dict.fromkeys(("Huey, Redis", "Celery with RedBeat, Redis"), "redis-server")


def test_each_repetition_plays_every_load_with_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says which of them it is."""
    played: list[tuple[str, str]] = []

    def player(load: str, name: str) -> peers.Play:
        def measured(progress: Progress) -> dict[str, Any]:
            played.append((load, name))
            progress("arrived", 1, 2)
            return one(10.0)

        return measured

    lines: list[str] = []
    names = [peers.OURS, "other"]
    monkeypatch.setattr(peers, "REPETITIONS", 2)
    monkeypatch.setattr(peers, "installed", lambda: contextlib.nullcontext(ALL_INSTALLED))
    monkeypatch.setattr(
        peers,
        "_players",
        lambda among, load, jobs, per_second: [
            (name, player(load, name)) for name in names if (load, name) != ("messages", peers.OURS)
        ],
    )
    monkeypatch.setattr("benchmarks.progress.EVERY_S", 0.0)
    found = peers.measure(Progress("peers", lines.append))
    once = [("burst", peers.OURS), ("burst", "other"), ("messages", "other"), ("steady", peers.OURS)]
    assert played == [*once, ("steady", "other")] * 2
    assert {load: len(found[f"peers_{load}"]["loads"]) for load in peers.TITLES} == dict.fromkeys(peers.TITLES, 2)
    assert [each["name"] for each in found["peers_messages"]["schedulers"]] == names
    assert any(line.startswith("peers: repetition 2 of 2, burst, other (7 of 10): arrived, 1 of 2;") for line in lines)


def test_an_unknown_load_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "LOADS", ["burst", "stedy"])
    with pytest.raises(SystemExit, match="expected names of burst, messages, steady, got stedy"):
        peers.loads_of()


def test_a_disturbed_run_is_an_outlier_and_no_result() -> None:
    runs = [{**one(pace), "load": 0.5} for pace in (2_900.0, 3_000.0, 298.0, 3_100.0, 2_950.0)]
    found = burst.median_of(runs)
    assert (found["per_second"], found["outliers"]) == (2_950.0, [298.0])
    assert [run["per_second"] for run in found["runs"]] == [2_900.0, 3_000.0, 298.0, 3_100.0, 2_950.0]
    assert burst.median_of(runs[:1])["outliers"] == []


def test_the_cpu_for_a_message_is_a_median_of_each_part() -> None:
    """Of Sluice: the Lambdas and the emulator apart. What never arrived is no message."""
    used = [{"Lambda burst": 1.0, "emulator": 2.0}, {"Lambda burst": 3.0, "emulator": 4.0, "others": 0.1}]
    runs = [
        one(10.0, part_cpu_s=used[0], recorded=100),
        one(10.0, part_cpu_s=used[1], recorded=50) | {"missed": 50},
        one(10.0, part_cpu_s=used[1], recorded=99),  # not to the last record
        one(10.0),
    ]
    ours = peers.summary(peers.OURS, runs)
    assert ours["message_cpu_ms"] == {"Lambda burst": 35.0, "emulator": 50.0, "others": 1.0}
    assert peers.cpu_row(ours)[1:4] == ("35.00", "50.00", "85.00")
    theirs = peers.summary("Huey, Redis", [one(10.0, part_cpu_s={"scheduler": 0.25, "redis": 0.1})])
    assert peers.cpu_row(theirs) == ("Huey, Redis", "2.50", "1.00", "3.50", "scheduler 2.50, redis 1.00")


def test_the_page_has_the_cpu_for_a_message_of_each_load() -> None:
    empty = "<!-- peers_cpu -->\n<!-- end -->"
    assert "Not measured yet." in page(empty, measured("burst")), "results of before have no such figures"
    found = measured("burst", "steady")
    found["peers_steady"]["schedulers"][0]["message_cpu_ms"] = {"Lambda check": 2.5, "emulator": 4.0}
    row = f"| steady load | {peers.OURS} | 2.50 | 4.00 | 6.50 | emulator 4.00, Lambda check 2.50 |"
    assert row in page(empty, found).splitlines()


def test_the_fires_of_a_peer_are_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "fired"
    file.write_text("0 1000 1010\n1 1000 1020\n2 1000 10")
    lines: list[str] = []
    fires = play.Fires(file, DUE, {})
    play.wait_for_fires(fires, 2, 0.0, 60.0, Progress("peers", lines.append))
    assert [line.partition(";")[0] for line in lines] == ["peers: arrived, 2 of 2"]
    lines.clear()
    play.wait_for_fires(fires, 3, 0.0, 0.1, Progress("peers", lines.append))  # the third line is not complete
    assert [line.partition(";")[0] for line in lines] == ["peers: arrived, 2 of 3"]
    play.wait_for_fires(play.Fires(tmp_path / "none", DUE, {}), 1, 0.0, 0.1, Progress("peers", lines.append))
    assert len(lines) == 1


def test_a_store_without_its_program_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "found", lambda program: None)
    with stores.redis(tmp_path) as redis, stores.postgres(tmp_path) as postgres:
        assert (redis, postgres) == (None, None)


def test_a_peer_that_does_not_begin_in_time_fails_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen([sys.executable, "-c", "print('no module')"], stdout=written)
    process.wait(30)
    with pytest.raises(RuntimeError, match="no module"):
        play._await_ready(process, log, DUE, 1)


def test_a_stopped_peer_leaves_no_process_behind() -> None:
    code = (
        "import subprocess, sys, time; subprocess.Popen(['sleep', '300']); print('begun', flush=True); time.sleep(300)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == b"begun\n"
    play._stop(process)
    process.stdout.close()
    assert process.returncode == -signal.SIGTERM


def test_the_cpu_time_of_each_run_shows_a_slow_host(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 5000 40 5 6 900 0 0\ncpu0 1 1 1 1\n")
    hertz = os.sysconf("SC_CLK_TCK")
    assert machine.busy_s(stat) == round(161 / hertz, 2)
    assert machine.busy_s(tmp_path / "none") is None
    assert machine.used_from(0)() == {"cpu_s": pytest.approx(0.0, abs=1.0)}
    ours = peers.summary(peers.OURS, [one(1_000.0, cpu_s=9.1), one(500.0, cpu_s=14.2)])
    assert ours["cpu_s"] == [9.1, 14.2]
    found = measured("burst")
    found["peers_burst"]["schedulers"][0] |= {"runs": [1_000.0, 500.0], "cpu_s": [9.1, 14.2]}
    text = page("<!-- peers_burst -->\n<!-- end -->", found)
    assert "Each run of Sluice, with the CPU time of the machine: 1,000 (9.1 s), 500 (14.2 s)." in text
