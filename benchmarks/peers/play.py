"""Play a load with a scheduler other than Sluice: start it with its jobs stored, see what fires when, and stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.burst import SAMPLED_EVERY_S
from benchmarks.cloud import own_cloud
from benchmarks.machine import ROOT, used_from
from benchmarks.peers import stores
from benchmarks.peers.fire import lines
from benchmarks.peers.stores import Server
from benchmarks.processes import EMULATOR, Reading, Sampler, of_cloud, of_trees
from benchmarks.progress import Progress
from benchmarks.target_queue import Arrival, TargetQueue, figures

HERE = Path(__file__).parent
LOCK = HERE / "requirements.lock"
VENV = ROOT / "build" / "peers"
# Seconds from the start of a peer until its first job is due. Each peer stores 10,000 jobs in half of this.
AHEAD_S, AHEAD_S_PER_JOB = 15, 1 / 300
PATIENCE_S = 60.0  # without a further fire; then the rest counts as missed
POLL_EVERY_S = 0.5
STOP_S = 10.0
SCHEDULER = "scheduler"  # the part of a peer's own processes

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
)


@dataclass(frozen=True)
class Installed:
    """The peers that can be played here: the Python that has them, and the servers of their stores; None is a store
    whose program is missing."""

    python: Path
    servers: Mapping[str, Server | None]

    @property
    def present(self) -> list[Peer]:
        return [peer for peer in PEERS if peer.needs is None or self.servers[peer.store]]

    @property
    def left_out(self) -> dict[str, str | None]:
        """The names of the other peers, with the program that each needs."""
        return {peer.name: peer.needs for peer in PEERS if peer not in self.present}


@contextmanager
def installed() -> Iterator[Installed]:
    """Install the peers, and run the servers of their stores."""
    python = _python()
    with (
        tempfile.TemporaryDirectory(prefix="sluice-peers-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        Path(folder).chmod(0o755)  # PostgreSQL has a user of its own
        servers = {
            "redis": stack.enter_context(stores.redis(Path(folder))),
            "postgres": stack.enter_context(stores.postgres(Path(folder))),
        }
        yield Installed(python, servers)


def _python() -> Path:
    """The Python of the peers, which are installed again when the list of their pins has changed."""
    python, stamp = VENV / "bin" / "python", VENV / ".installed"
    if not stamp.exists() or stamp.stat().st_mtime < LOCK.stat().st_mtime:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*pip, "--requirement", str(LOCK)], check=True)
        stamp.touch()
    return python


@dataclass(frozen=True)
class Fires:
    """A peer that fires its jobs: the file of its fires, the first instant in epoch s, and its processes by part."""

    file: Path
    due_s: int
    roots: Mapping[str, int]

    def reading(self) -> Reading:
        """The CPU time of the peer and of the server of its store."""
        return of_trees(self.roots)


def play_peer(peer: Peer, among: Installed, jobs: int, per_second: int, progress: Progress) -> Measured:
    """Let a peer fire a load, and stop it. Raises RuntimeError with the end of its log if it does not begin in time."""
    with (
        firing(peer, among, jobs, per_second, {}, progress) as fires,
        Sampler(fires.reading, SAMPLED_EVERY_S) as sampler,
    ):
        cpu = used_from(fires.due_s - 1 - time.time())
        last = fires.due_s + (jobs // per_second if per_second else 0)
        wait_for_fires(fires, jobs, last, PATIENCE_S, progress)
        used = cpu()
        sampler.sample()
        return {**peer_figures(list(lines(fires.file)), jobs), **used, "part_cpu_s": sampler.used()}


def play_messages(peer: Peer, among: Installed, jobs: int, per_second: int, progress: Progress) -> Measured:
    """As `play_peer`, but each job of the peer sends a message to a queue of a local cloud."""
    progress("starting a cloud")
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "peers")
        environment = cloud.endpoints.environment() | {"SLUICE_PEER_QUEUE": queue.url}
        with firing(peer, among, jobs, per_second, environment, progress) as fires:

            def reading() -> Reading:
                """With the emulator, which answers for the queue. The Lambdas of this cloud have nothing to do."""
                emulator = {of: one for of, one in of_cloud(cloud.layout.root).items() if one[0] == EMULATOR}
                return {**fires.reading(), **emulator}

            with Sampler(reading, SAMPLED_EVERY_S) as sampler:
                cpu = used_from(fires.due_s - 1 - time.time())
                queue.wait_for(jobs, PATIENCE_S, lambda count: progress("arrived", count, jobs))
                used = cpu()
        progress("reading the messages")
        arrivals = queue.drain()
    fired = [(number_of(one.event_id), one.nominal_at, one.sent_at) for one in arrivals]
    return {**peer_figures(fired, jobs), **used, "part_cpu_s": sampler.used()}


def number_of(event_id: str) -> int:
    """The number of a peer's job in the id of its message."""
    return int(event_id.removeprefix("shot"))


@contextmanager
def firing(
    peer: Peer, among: Installed, jobs: int, per_second: int, environment: Mapping[str, str], progress: Progress
) -> Iterator[Fires]:
    """A peer that has stored its jobs and will fire them."""
    progress(f"storing {jobs:,} jobs")
    with tempfile.TemporaryDirectory(prefix="sluice-peer-") as folder:
        server = among.servers.get(peer.store)
        store = _fresh(peer.store, server.url if server else None, Path(folder))
        due_s = int(time.time()) + ahead_s(jobs)
        command = [str(among.python), str(HERE / "fire.py"), peer.function, store, folder]
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
            progress("waiting for the instant")
            roots = {SCHEDULER: process.pid} | ({peer.store: server.pid} if server else {})
            yield Fires(Path(folder) / "fired", due_s, roots)
        finally:
            _stop(process)


def ahead_s(jobs: int) -> int:
    """Seconds from the start of a peer with so many jobs until the first one is due."""
    return AHEAD_S + round(jobs * AHEAD_S_PER_JOB)


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


class FireCount:
    """Counts the fires in the file of a peer. It reads only what is new, so that looking takes no time from the
    peer."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read, self._count = 0, 0

    def __call__(self) -> int:
        if self._file.exists():
            with self._file.open("rb") as written:
                written.seek(self._read)
                new = written.read()
            self._read += len(new)
            self._count += new.count(b"\n")
        return self._count


def wait_for_fires(fires: Fires, jobs: int, last: float, patience_s: float, progress: Progress) -> None:
    """Wait until all jobs have fired, or none does for a while. ``last`` is the last instant in epoch s: before it,
    the wait does not end."""
    fired, arrived, since = FireCount(fires.file), 0, time.time()
    while arrived < jobs and time.time() - max(since, last) < patience_s:
        time.sleep(POLL_EVERY_S)
        if (now := fired()) > arrived:
            arrived, since = now, time.time()
            progress("arrived", arrived, jobs)


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
