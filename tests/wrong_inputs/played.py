"""Wrong results of a node, played: the DAG of a page runs, its node hands on what the page says, and a person asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.cli import frame
from tests.workers.served import Served, serving
from tests.wrong_inputs.pages import FOLDER, Example, of_page
from tests.wrong_inputs.served import NOW, FixedClock, answer

PLAYED = FOLDER / "played"
ANN = {"worker": "ann", "capacity": 10}
DAG = "/v1/namespaces/demo/apps/trial/dags/nightly"


def examples() -> list[Example]:
    return [each for path in sorted(PLAYED.glob("*.md")) for each in of_page(path.stem, path.read_text())]


class Play:
    """A run of ``demo.trial.nightly``, whose nodes run in the pool ``demo.etl``."""

    def __init__(self, served: Served, example: Example) -> None:
        self._served, self.example, self.api = served, example, served.api
        self.api.put("/v1/namespaces/demo/apps/trial", yaml.safe_load(example.files["app.yaml"]))
        self.run_id = self.api.post(f"{DAG}/run", idempotency_key="1")["run_id"]
        self.api.work()
        self.hands_on(self.result("scan.py"))

    def result(self, file: str) -> Any:
        """What the program hands on: the value of an expression in a file of the page; nothing without the file."""
        return eval(self.example.files[file], {}) if file in self.example.files else None

    def hands_on(self, result: Any) -> None:
        """The one run that a worker gets succeeds with this result."""
        [lease] = self._claimed()
        self.scan: str = lease["run_id"]
        self._ends(lease, {"state": "succeeded", **({} if result is None else {"result": result})})

    def all_end(self) -> None:
        """A worker claims runs and reports success, until no run is left."""
        while leases := self._claimed():
            for lease in leases:
                self._ends(lease, {"state": "succeeded"})

    def _claimed(self) -> Any:
        return self.api.post("/v1/workers/demo.etl/claim", {**ANN, "wait": 0})["leases"]

    def _ends(self, lease: Any, report: Any) -> None:
        self.api.post(f"/v1/leases/{lease['lease']}/report", {"worker": "ann", **report})
        self.api.work()

    def state(self) -> Any:
        return self.api.get(f"{DAG}/runs/{self.run_id}")

    def printed(self, folder: Path) -> str:
        """The answer to the command of the page, in which RUN is the id of the run, and SCAN that of its first node."""
        command = self.example.command.replace("RUN", self.run_id).replace("SCAN", self.scan)
        asked = replace(self.example, command=command)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame, "now", lambda: datetime.fromisoformat(NOW))
            return answer(self._served, asked, folder)


@contextmanager
def played(example: Example) -> Iterator[Play]:
    with serving(FixedClock()) as served:
        yield Play(served, example)
