"""Where the local cloud keeps things: everything under `.local/` of one checkout, so that clones do not meet."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What a local cloud is made from: all that a copy of a checkout needs to bring one up.
SOURCES = (
    *("app.py", "chalicelib", ".chalice/config.json", "requirements.txt", "requirements.lock"),
    *("infra", "sluice", "jobs"),
)


@dataclass(frozen=True)
class Layout:
    """Paths of one checkout's local cloud."""

    root: Path = ROOT

    @property
    def home(self) -> Path:
        """`.local/`: remove it and nothing of the local cloud is left."""
        return self.root / ".local"

    @property
    def aws_process(self) -> Path:
        """Held locked by ministack."""
        return self.home / "aws.process"

    @property
    def emr_process(self) -> Path:
        """Held locked by the EMR Serverless emulator."""
        return self.home / "emr.process"

    @property
    def aws_log(self) -> Path:
        """ministack's log, with the output of Lambdas that SQS has invoked."""
        return self.home / "logs/aws.log"

    @property
    def emr_log(self) -> Path:
        """The EMR Serverless emulator's log."""
        return self.home / "logs/emr.log"

    @property
    def throttle(self) -> Path:
        """Which calls are throttled (`throttle.py`). Without it, none are."""
        return self.home / "throttle.json"

    @property
    def refusals(self) -> Path:
        """What IAM has refused Lambdas (`refusals.py`). Without it, nothing."""
        return self.home / "refusals.jsonl"

    @property
    def callers(self) -> Path:
        """Which role signs with which access key (`callers.py`)."""
        return self.home / "callers.json"

    @property
    def package(self) -> Path:
        """What was packaged last: template and code."""
        return self.home / "package"

    @property
    def endpoints(self) -> Path:
        """The file that shells source."""
        return self.home / "endpoints.env"

    @property
    def lock(self) -> Path:
        """Held while somebody starts or stops the cloud. The one thing that `clear` leaves."""
        return self.home / "lock"

    def remembered(self, name: str) -> Any:
        """What `remember` has stored under `name`, or None."""
        try:
            return json.loads((self.home / f"{name}.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def remember(self, name: str, value: Any) -> None:
        """Store a JSON value for the next `up`."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / f"{name}.json").write_text(json.dumps(value))

    def clear(self) -> None:
        """Remove everything but the lock: whoever waits for it must not be left with a file that is gone."""
        for child in self.home.iterdir():
            if child.is_dir():
                shutil.rmtree(child, ignore_errors=True)
            elif child != self.lock:
                child.unlink(missing_ok=True)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """One at a time: two first starts at once would otherwise both find nothing running, and both start it."""
        self.home.mkdir(parents=True, exist_ok=True)
        with self.lock.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
