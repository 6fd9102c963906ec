"""Private PostgreSQL and Redis servers for the peers: in a temporary folder, on a free port, stopped at the end.

The programs are those of the machine (on Debian: `apt-get install postgresql redis-server`). Without one of them, its
store is None.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.local import ports

POSTGRES_FOLDERS = "/usr/lib/postgresql"
START_S = 30.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its URL for SQLAlchemy or Redis, and the number of its process."""

    url: str
    pid: int


def found(program: str) -> str | None:
    """The path of a program; for those of PostgreSQL also where Debian has them, the newest version first."""
    if path := shutil.which(program):
        return path
    versions = sorted(Path(POSTGRES_FOLDERS).glob(f"*/bin/{program}"), key=lambda path: path.parts[-3], reverse=True)
    return str(versions[0]) if versions else None


@contextmanager
def redis(folder: Path) -> Iterator[Server | None]:
    """A Redis that appends each write to a file, and flushes the file every second: its documents' choice
    for durable data."""
    server = found("redis-server")
    if server is None:
        yield None
        return
    port = ports.any_free()
    place = folder / "redis"
    place.mkdir()
    command = [server, "--port", str(port), "--bind", ports.HOST, "--dir", str(place), "--save", ""]
    with _served([*command, "--appendonly", "yes"], place / "log", port) as pid:
        yield Server(f"redis://{ports.HOST}:{port}/0", pid)


@contextmanager
def postgres(folder: Path) -> Iterator[Server | None]:
    """A PostgreSQL with its default settings: each commit waits for the disk."""
    server, initdb = found("postgres"), found("initdb")
    if server is None or initdb is None:
        yield None
        return
    port = ports.any_free()
    place = folder / "postgres"
    place.mkdir()
    as_user = _not_root(place)
    log = folder / "postgres.log"
    command = [initdb, "--pgdata", str(place / "data"), "--username", "peer", "--auth", "trust", "--encoding", "UTF8"]
    subprocess.run(command, check=True, capture_output=True, user=as_user, cwd=place)
    server_command = [server, "-D", str(place / "data"), "-p", str(port), "-h", ports.HOST, "-k", ""]
    with _served(server_command, log, port, as_user) as pid:
        _wait_for_sql(port)
        yield Server(f"postgresql+psycopg2://peer@{ports.HOST}:{port}/postgres", pid)


def _not_root(place: Path) -> str | None:
    """PostgreSQL refuses to run as root: then it runs as `postgres`, or else `nobody`, who gets the folder."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    name = next(name for name in ("postgres", "nobody") if name in names)
    shutil.chown(place, name)
    for parent in place.parents:
        if parent.stat().st_uid == 0 and parent != Path("/") and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    return name


@contextmanager
def _served(command: list[str], log: Path, port: int, user: str | None = None) -> Iterator[int]:
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, user=user, cwd=log.parent)
    try:
        until = time.monotonic() + START_S
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield process.pid
    finally:
        # For PostgreSQL SIGINT ends sessions; Redis takes it as SIGTERM.
        process.send_signal(2)
        process.wait(START_S)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((ports.HOST, port), timeout=1):
            return True
    except OSError:
        return False


def _wait_for_sql(port: int) -> None:
    """PostgreSQL accepts connections before it answers queries."""
    ready = found("pg_isready")
    until = time.monotonic() + START_S
    while ready and subprocess.run([ready, "-q", "-h", ports.HOST, "-p", str(port)], check=False).returncode != 0:
        if time.monotonic() > until:
            raise RuntimeError(f"PostgreSQL did not answer within {START_S:.0f} s")
        time.sleep(0.1)
