"""Applications, runs and client tokens in one SQLite file, so that they outlive the emulator's process.

Each row is a JSON document with columns for the searches. The unique index on (application, client token) makes
StartJobRun idempotent forever, with any number of concurrent callers.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import states
from .records import Application, JobRun

_SCHEMA = """
CREATE TABLE IF NOT EXISTS applications (
    id TEXT PRIMARY KEY, client_token TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, application_id TEXT NOT NULL,
    client_token TEXT NOT NULL, state TEXT NOT NULL, created_at REAL NOT NULL, body TEXT NOT NULL,
    UNIQUE (application_id, client_token));
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (application_id, state, seq);
"""


@dataclass(frozen=True)
class Page:
    """Runs of a listing, and the cursor of the next page: state and sequence number of the last run; None at the
    end."""

    runs: tuple[JobRun, ...]
    cursor: tuple[str, int] | None


class Store:
    """Thread-safe: one connection behind a lock."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # WAL with synchronous=NORMAL survives a killed process; only a power failure can lose the last commits.
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def add_application(self, application: Application) -> Application:
        """Store the application, or return the one that its client token created before."""
        with self._lock:
            self._db.execute(
                "INSERT INTO applications (id, client_token, body) VALUES (?, ?, ?) "
                "ON CONFLICT (client_token) DO NOTHING",
                (application.id, application.client_token, application.to_json()),
            )
            row = self._db.execute(
                "SELECT body FROM applications WHERE client_token = ?", (application.client_token,)
            ).fetchone()
        return Application.from_json(row[0])

    def save_application(self, application: Application) -> None:
        with self._lock:
            self._db.execute("UPDATE applications SET body = ? WHERE id = ?", (application.to_json(), application.id))

    def application(self, application_id: str) -> Application | None:
        with self._lock:
            row = self._db.execute("SELECT body FROM applications WHERE id = ?", (application_id,)).fetchone()
        return Application.from_json(row[0]) if row else None

    def applications(self) -> list[Application]:
        """All applications, oldest first."""
        with self._lock:
            rows = self._db.execute("SELECT body FROM applications ORDER BY rowid").fetchall()
        return [Application.from_json(body) for (body,) in rows]

    def run_of_token(self, application_id: str, client_token: str) -> JobRun | None:
        with self._lock:
            row = self._db.execute(
                "SELECT body FROM runs WHERE application_id = ? AND client_token = ?", (application_id, client_token)
            ).fetchone()
        return JobRun.from_json(row[0]) if row else None

    def add_run(self, run: JobRun) -> JobRun:
        """Store the run, or return the run that its client token started before in this application."""
        with self._lock:
            self._db.execute(
                "INSERT INTO runs (id, application_id, client_token, state, created_at, body) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (application_id, client_token) DO NOTHING",
                (run.id, run.application_id, run.client_token, run.state, run.created_at, run.to_json()),
            )
            stored = self.run_of_token(run.application_id, run.client_token)
        assert stored is not None
        return stored

    def save_run(self, run: JobRun) -> None:
        with self._lock:
            self._db.execute("UPDATE runs SET state = ?, body = ? WHERE id = ?", (run.state, run.to_json(), run.id))

    def run(self, run_id: str) -> JobRun | None:
        with self._lock:
            row = self._db.execute("SELECT body FROM runs WHERE id = ?", (run_id,)).fetchone()
        return JobRun.from_json(row[0]) if row else None

    def unfinished(self, application_id: str | None = None) -> list[JobRun]:
        """Runs in no terminal state, in the order of submission."""
        marks = ",".join("?" * len(states.TERMINAL))
        with self._lock:
            rows = self._db.execute(
                f"SELECT body FROM runs WHERE state NOT IN ({marks}) AND (? IS NULL OR application_id = ?) "
                "ORDER BY seq",
                (*states.TERMINAL, application_id, application_id),
            ).fetchall()
        return [JobRun.from_json(body) for (body,) in rows]

    def page(
        self,
        application_id: str,
        in_states: Sequence[str],
        created: tuple[float, float],
        limit: int,
        after: tuple[str, int] | None,
    ) -> Page:
        """Runs, newest first; with several states, grouped by state, as AWS documents for ListJobRuns.

        `created` is a half-open interval of epoch seconds; `after` is the cursor of the previous page.
        """
        group = "state" if len(in_states) > 1 else "''"
        marks = ",".join("?" * len(in_states))
        matching = f"state IN ({marks})" if in_states else "1"
        after_state, after_seq = after if after is not None else ("", 2**62)
        with self._lock:
            rows = self._db.execute(
                f"SELECT {group}, seq, body FROM runs WHERE application_id = ? AND {matching} "
                f"AND created_at >= ? AND created_at < ? AND ({group} > ? OR ({group} = ? AND seq < ?)) "
                f"ORDER BY {group}, seq DESC LIMIT ?",
                (application_id, *in_states, *created, after_state, after_state, after_seq, limit + 1),
            ).fetchall()
        cursor = (rows[limit - 1][0], rows[limit - 1][1]) if len(rows) > limit else None
        return Page(tuple(JobRun.from_json(body) for _, _, body in rows[:limit]), cursor)
