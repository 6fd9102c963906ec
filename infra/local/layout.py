"""The files of the local cloud: all below `.local/` of one checkout, so that clones do not collide."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The sources of a local cloud: all that a copy of a checkout needs to start one.
SOURCES = (
    *("app.py", "chalicelib", ".chalice/config.json", "requirements-lambda.lock"),
    *("infra", "sluice", "jobs", "job_library"),
)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, atomically, because another process may read it at any moment."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.replace(path)


@dataclass(frozen=True)
class Layout:
    """Paths of one checkout's local cloud."""

    root: Path = ROOT

    @property
    def home(self) -> Path:
        """`.local/`, which holds everything of the local cloud."""
        return self.root / ".local"

    @property
    def aws_process(self) -> Path:
        """The process file, which ministack holds locked."""
        return self.home / "aws.process"

    @property
    def emr_process(self) -> Path:
        """The process file, which the EMR Serverless emulator holds locked."""
        return self.home / "emr.process"

    @property
    def aws_log(self) -> Path:
        """ministack's log, with the output of Lambdas that SQS invokes."""
        return self.home / "logs/aws.log"

    @property
    def emr_log(self) -> Path:
        """The EMR Serverless emulator's log."""
        return self.home / "logs/emr.log"

    @property
    def throttle(self) -> Path:
        """The calls that are throttled (`throttle.py`). Without the file, none are."""
        return self.home / "throttle.json"

    @property
    def counts(self) -> Path:
        """The calls that are counted (`counts.py`). Without the file, none are."""
        return self.home / "counts.json"

    @property
    def refusals(self) -> Path:
        """The calls of Lambdas that IAM refused (`refusals.py`). Without the file, none."""
        return self.home / "refusals.jsonl"

    @property
    def callers(self) -> Path:
        """The access keys that ministack knows (`callers.py`)."""
        return self.home / "callers.json"

    @property
    def package(self) -> Path:
        """The last package: template and code."""
        return self.home / "package"

    @property
    def endpoints(self) -> Path:
        """The file that shells source."""
        return self.home / "endpoints.env"

    @property
    def lock(self) -> Path:
        """The lock of starts and stops. The only file that `clear` keeps."""
        return self.home / "lock"

    def remembered(self, name: str) -> Any:
        """The value that `remember` has stored under `name`, or None."""
        try:
            return json.loads((self.home / f"{name}.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def remember(self, name: str, value: Any) -> None:
        """Store a JSON value for the next `up`."""
        self.make_home()
        write_private(self.home / f"{name}.json", json.dumps(value))

    def make_home(self) -> None:
        """Create the folder. Only its owner may enter it: state, logs and files hold keys."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)

    def clear(self) -> None:
        """Remove everything but the lock, because another process may be waiting for that file."""
        for child in self.home.iterdir():
            if child.is_dir():
                shutil.rmtree(child, ignore_errors=True)
            elif child != self.lock:
                child.unlink(missing_ok=True)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Allow one process at a time: two first starts at once would both find nothing running, and both start
        servers."""
        self.make_home()
        with self.lock.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
