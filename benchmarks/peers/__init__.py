"""peers: the burst and the steady load of Sluice and of other schedulers, on one machine, one after the other.

Each repetition plays the burst with every scheduler, and then the steady load; so what disturbs the machine for a while
disturbs all of them. Sluice runs on its local cloud (`burst`, `steady`), each peer in processes of its own (`fire.py`)
with a database of its own (`stores.py`). The peers are installed into `build/peers` from `requirements.lock`.

A fire of Sluice is a message in a queue of the local cloud, stamped by the queue. A fire of a peer is a line that its
worker appends to a file, with the present instant, which costs less. So there is a second burst, ``messages``: each
job of a peer sends its message to such a queue, too. The results are medians over the repetitions, their spread, and
the ratio of each median to Sluice's. `SLUICE_BENCH_LOADS=burst,steady` plays these loads alone, and keeps the
results of the others."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import burst, steady
from benchmarks.cloud import own_cloud
from benchmarks.machine import ROOT, used_from
from benchmarks.measurement import Progress, Results
from benchmarks.peers import stores
from benchmarks.peers.fire import lines
from benchmarks.target_queue import Arrival, TargetQueue, figures

HERE = Path(__file__).parent
LOCK = HERE / "requirements.lock"
VENV = ROOT / "build" / "peers"
REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "5"))
OURS = "Sluice, local cloud"
# Seconds from the start of a peer until its first job is due. Each peer stores 10,000 jobs in half of this.
AHEAD_S, AHEAD_S_PER_JOB = 15, 1 / 300
PATIENCE_S = 60.0  # without a further fire; then the rest counts as missed
POLL_EVERY_S = 0.5
STOP_S = 10.0
SHARES = ("p50", "p99", "max")
TITLES = {"burst": "burst", "messages": "burst of messages", "steady": "steady load"}
# A repetition of all of them takes some twenty minutes.
LOADS = os.environ.get("SLUICE_BENCH_LOADS", ",".join(TITLES)).split(",")

Measured = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A scheduler with its store. ``needs`` names the program without which it is left out."""

    name: str
    function: str
    store: str
    needs: str | None
    lacks: str


PEERS = (
    Peer(
        "APScheduler, SQLite",
        "apscheduler",
        "sqlite",
        None,
        "one process; a job is removed when it is handed to a thread, so a crash loses what the threads have not run; "
        "no further try; by default a job that is a second late is dropped",
    ),
    Peer(
        "APScheduler, PostgreSQL",
        "apscheduler",
        "postgres",
        "postgres",
        "as on SQLite; two processes on one store both run each job",
    ),
    Peer(
        "Huey, SQLite",
        "huey",
        "sqlite",
        None,
        "a job is removed when a worker takes it, so a crash loses it; tries again only if the task says so; looks "
        "once a second",
    ),
    Peer(
        "Huey, Redis",
        "huey",
        "redis",
        "redis-server",
        "as on SQLite, and a crash of Redis loses up to the last second",
    ),
    Peer(
        "Celery with RedBeat, Redis",
        "celery",
        "redis",
        "redis-server",
        "one beat; a crash of Redis loses up to the last second; a beat that dies after recording a fire and before "
        "sending it loses it; tries again only if the task says so",
    ),
)  # fmt: skip


def measure(progress: Progress) -> Results:
    """An entry for each load, such as ``peers_burst``: the figures of each scheduler, and ``left_out``."""
    runs: dict[str, dict[str, list[Measured]]] = {name: {} for name, _, _ in loads_of()}
    before: dict[str, list[float]] = {name: [] for name in runs}
    python = installed()
    with (
        tempfile.TemporaryDirectory(prefix="sluice-peers-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        Path(folder).chmod(0o755)  # PostgreSQL has a user of its own
        urls = {
            "redis": stack.enter_context(stores.redis(Path(folder))),
            "postgres": stack.enter_context(stores.postgres(Path(folder))),
        }
        peers = [peer for peer in PEERS if peer.needs is None or urls[peer.store]]
        done, total = 0, REPETITIONS * len(runs) * (1 + len(peers))
        for repetition in range(REPETITIONS):
            for load, jobs, per_second in loads_of():
                before[load].append(round(os.getloadavg()[0], 2))
                for name, play in _players(peers, python, urls, load, jobs, per_second):
                    progress(f"{repetition + 1}/{REPETITIONS} {load}: {name}", done, total)
                    runs[load].setdefault(name, []).append(play())
                    done += 1
                if load == "burst" and "messages" in runs:
                    # Sluice's burst is one of messages: it is not played twice.
                    runs["messages"].setdefault(OURS, []).append(runs["burst"][OURS][-1])
    left_out = {peer.name: peer.needs for peer in PEERS if peer not in peers}
    summed = with_ratios({load: [summary(name, of) for name, of in found.items()] for load, found in runs.items()})
    about = {"repetitions": REPETITIONS, "left_out": left_out}
    return {
        f"peers_{load}": {**about, "loads": before[load], "schedulers": entries} for load, entries in summed.items()
    }


def loads_of() -> tuple[tuple[str, int, int], ...]:
    """The name of each load to play, its jobs and how many are due in each second (0: all at once). Ends the program
    at an unknown name."""
    if unknown := set(LOADS) - set(TITLES):
        names = ", ".join(TITLES)
        raise SystemExit(f"bench: SLUICE_BENCH_LOADS: expected names of {names}, got {', '.join(sorted(unknown))}")
    every_second = ("steady", steady.PER_SECOND * steady.SECONDS, steady.PER_SECOND)
    every = ("burst", burst.JOBS, 0), ("messages", burst.JOBS, 0), every_second
    return tuple(load for load in every if load[0] in LOADS)


def _players(
    peers: Sequence[Peer], python: Path, urls: dict[str, str | None], load: str, jobs: int, per_second: int
) -> Iterator[tuple[str, Callable[[], Measured]]]:
    def quiet(about: str, done: int, total: int) -> None:
        """The progress of one load is not shown: that of all loads is."""

    ours = {
        "burst": lambda: burst.once("burst", burst.one_shots, quiet),
        "steady": lambda: dict(steady.measure(quiet)["steady"]),
    }
    if load == "messages" and "burst" not in LOADS:
        yield OURS, ours["burst"]
    elif load in ours:
        yield OURS, ours[load]
    play = play_messages if load == "messages" else play_peer
    for peer in peers:
        yield peer.name, partial(play, peer, python, urls.get(peer.store), jobs, per_second)


def installed() -> Path:
    """The Python of the peers, which are installed again when the list of their pins has changed."""
    python, stamp = VENV / "bin" / "python", VENV / ".installed"
    if not stamp.exists() or stamp.stat().st_mtime < LOCK.stat().st_mtime:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*pip, "--requirement", str(LOCK)], check=True)
        stamp.touch()
    return python


def play_peer(peer: Peer, python: Path, url: str | None, jobs: int, per_second: int) -> Measured:
    """Let a peer fire a load, and stop it. Raises RuntimeError with the end of its log if it does not begin in time."""
    with _firing(peer, python, url, jobs, per_second, {}) as (file, due_s):
        cpu = used_from(due_s - 1 - time.time())
        return {**_awaited(file, due_s, jobs, per_second), **cpu()}


def play_messages(peer: Peer, python: Path, url: str | None, jobs: int, per_second: int) -> Measured:
    """As `play_peer`, but each job of the peer sends a message to a queue of a local cloud."""
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "peers")
        environment = cloud.endpoints.environment() | {"SLUICE_PEER_QUEUE": queue.url}
        with _firing(peer, python, url, jobs, per_second, environment) as (_, due_s):
            cpu = used_from(due_s - 1 - time.time())
            queue.wait_for(jobs, PATIENCE_S, lambda count: None)
            used = cpu()
        arrivals = queue.drain()
    return {**peer_figures([(number_of(one.event_id), one.nominal_at, one.sent_at) for one in arrivals], jobs), **used}


def number_of(event_id: str) -> int:
    """The number of a peer's job in the id of its message."""
    return int(event_id.removeprefix("shot"))


@contextmanager
def _firing(
    peer: Peer, python: Path, url: str | None, jobs: int, per_second: int, environment: Mapping[str, str]
) -> Iterator[tuple[Path, int]]:
    """A peer that has stored its jobs and will fire them: the file of its fires, and the first instant in epoch s."""
    with tempfile.TemporaryDirectory(prefix="sluice-peer-") as folder:
        store = _fresh(peer.store, url, Path(folder))
        due_s = int(time.time()) + AHEAD_S + round(jobs * AHEAD_S_PER_JOB)
        command = [str(python), str(HERE / "fire.py"), peer.function, store, folder]
        log = Path(folder) / "log"
        with log.open("wb") as written:
            process = subprocess.Popen(
                [*command, str(due_s), str(jobs), str(per_second)],
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | environment,
            )
        try:
            _await_ready(process, log, due_s, jobs)
            yield Path(folder) / "fired", due_s
        finally:
            _stop(process)


def _fresh(store: str, url: str | None, folder: Path) -> str:
    """The URL of an empty store."""
    if store == "sqlite":
        return f"sqlite:///{folder}/jobs.db"
    if url is None:
        raise ValueError(f"expected the URL of {store}, got none")
    python = str(VENV / "bin" / "python")
    subprocess.run([python, str(HERE / "clear.py"), url], check=True)
    return url


def _await_ready(process: subprocess.Popen[bytes], log: Path, due_s: int, jobs: int) -> None:
    while b"ready" not in log.read_bytes():
        if process.poll() is not None or time.time() > due_s - 1:
            text = log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"expected the peer to have stored {jobs} jobs by their instant:\n{text}")
        time.sleep(POLL_EVERY_S)


def _awaited(file: Path, due_s: int, jobs: int, per_second: int) -> Measured:
    last = due_s + (jobs // per_second if per_second else 0)
    arrived, since = 0, time.time()
    # The file is looked at rarely, and by its size, so that looking takes no time from the peer.
    while arrived < jobs and time.time() - max(since, last) < PATIENCE_S:
        time.sleep(POLL_EVERY_S)
        now = file.read_bytes().count(b"\n") if file.exists() else 0
        arrived, since = (now, time.time()) if now > arrived else (arrived, since)
    return peer_figures(list(lines(file)), jobs)


def peer_figures(fires: Sequence[tuple[int, int, int]], jobs: int) -> Measured:
    """The figures of a peer's fires. A fire before its instant counts as ``early``, and as on time for the lateness."""
    if not fires:
        return {"jobs": jobs, "seconds": None, "per_second": 0.0, "missed": jobs, "doubled": 0, "early": 0}
    early = sum(at < due for _, due, at in fires)
    return {**figures([Arrival(str(number), due, max(at, due)) for number, due, at in fires], jobs), "early": early}


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the peer and the processes that it has started: they are a group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait(STOP_S)


def summary(name: str, runs: Sequence[Measured]) -> Measured:
    """The medians of a scheduler's runs, and the least and most of them for the pace. Missed and doubled are sums."""
    late = [one["lateness_ms"] for one in runs if "lateness_ms" in one]
    paces = [one["per_second"] for one in runs]
    return {
        "name": name,
        "jobs": runs[0]["jobs"],
        "runs": paces,
        "cpu_s": [one["cpu_s"] for one in runs if one.get("cpu_s") is not None],
        "per_second": round(statistics.median(paces), 1),
        "least": min(paces),
        "most": max(paces),
        "lateness_ms": {share: statistics.median(one[share] for one in late) for share in SHARES} if late else {},
        **{count: sum(one.get(count, 0) for one in runs) for count in ("missed", "doubled", "early")},
    }


def with_ratios(summed: dict[str, list[Measured]]) -> dict[str, list[Measured]]:
    """The summaries with the ratio of each to Sluice: of the pace of a burst, and of the p99 of the steady load."""
    for load, (ours, *_) in summed.items():
        for one in summed[load]:
            if load != "steady":
                one["ratio"] = round(one["per_second"] / ours["per_second"], 2)
            elif one["lateness_ms"]:
                one["ratio"] = round(one["lateness_ms"]["p99"] / max(ours["lateness_ms"]["p99"], 1), 1)
            else:
                one["ratio"] = None
    return summed


def tables(results: Results) -> list[Table]:
    found = {load: results[f"peers_{load}"] for load in TITLES if f"peers_{load}" in results}
    return [_table(load, one["schedulers"], one["repetitions"]) for load, one in found.items()]


def _table(load: str, entries: Sequence[Measured], repetitions: int) -> Table:
    ratio = "p99 to ours" if load == "steady" else "pace to ours"
    title = f"{TITLES[load]}, medians of {repetitions}, lateness in ms"
    table = Table(title=title, title_justify="left")
    for heading in (
        "scheduler",
        "per second",
        "least to most",
        ratio,
        "p50",
        "p99",
        "max",
        "missed",
        "doubled",
        "early",
    ):
        table.add_column(heading, justify="left" if heading == "scheduler" else "right")
    for one in entries:
        table.add_row(*(str(cell) for cell in row_of(one)))
    return table


def row_of(one: Measured) -> tuple[object, ...]:
    """The cells of a scheduler, for the terminal and the page."""
    late = [f"{one['lateness_ms'][share]:,.0f}" if one["lateness_ms"] else "" for share in SHARES]
    spread = f"{one['least']:,.0f} to {one['most']:,.0f}"
    counts = (one["missed"], one["doubled"], one["early"])
    return (
        one["name"],
        f"{one['per_second']:,.0f}",
        spread,
        "" if one["ratio"] is None else one["ratio"],
        *late,
        *counts,
    )
