"""The requests of the console at 10,000 schedules, each with the bounds of its answer, and the routes that the page
names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chalicelib.core import ids
from tests.support.clock import NOON
from tests.web.many_runs import DAG, LARGE_FIRE, LAST_RUN
from tests.web.many_schedules import LIMIT, names

PAGE = Path(__file__).parents[2] / "console" / "src"
NS = "/v1/namespaces/demo"
OWN = f"{NS}/apps/a1/schedules/s0001"
JOB = f"demo.a0.s0000.{ids.base36(NOON)}.{50_700:020d}"  # one of those that queue
DAG_RUN = "<dag run>"  # in a path: the id of a run of the DAG


@dataclass(frozen=True)
class Bounded:
    """A request, the most calls to the tables, read units and kB of its answer, and the field that says that the answer
    is a part."""

    path: str
    calls: int
    units: float
    kb: int
    cut: str = ""
    body: Any = None

    @property
    def name(self) -> str:
        return f"{'POST' if self.body is not None else 'GET'} {self.path.removeprefix('/v1/')}"[:90]

    @property
    def route(self) -> str:
        """The path with `{}` for each name and id, as in `of_page`."""
        path = self.path.partition("?")[0]
        for kind in (
            "namespaces",
            "apps",
            "schedules",
            "dags",
            "datasets",
            "pools",
            "policies",
            "workflows",
            "jobs",
            "messages",
            "fires",
        ):
            path = re.sub(rf"(?<=/{kind}/)[^/]+", "{}", path)
        return re.sub(r"(/dags/\{\}/runs/|/v1/runs/|/reprocess/)[^/]+", r"\1{}", path)


# Calls and units are counted, and rounded up. A call to the tables takes 2 to 10 ms in AWS.
REQUESTS = (
    Bounded("/v1/whoami", 1, 1, 1),
    Bounded("/v1/namespaces?limit=500", 2, 2, 1),
    Bounded(NS, 2, 2, 1),
    Bounded(f"{NS}/schedules?limit=100", 8, 220, 60, "next_cursor"),
    Bounded(f"{NS}/schedules?limit=2000", 50, 4_500, 1_000, "next_cursor"),
    Bounded(f"{NS}/schedules?q=s0&limit=50", 8, 220, 30, "next_cursor"),
    Bounded(f"{NS}/schedules?q=a9.s099&limit=50", 25, 300, 30),
    Bounded(f"{NS}/schedules?q=no-such-name&limit=50", 25, 300, 1),
    Bounded(f"{NS}/glance", 360, 360, 20, body={"schedules": names()[5_000:5_050]}),
    Bounded(f"{NS}/now", 60, 1_800, 100),
    Bounded(f"{NS}/now?rows=100", 30, 300, 100, "at_least"),
    Bounded(f"{NS}/fires", 70, 3_200, 400, "at_least"),
    Bounded(f"{NS}/fires?limit=10", 12, 120, 3, "at_least"),
    Bounded(f"{NS}/outcomes", 15, 320, 8, "more"),
    Bounded(f"{NS}/runs?limit=500", 15, 700, 600, "next_cursor"),
    Bounded(f"{NS}/runs?limit=500&state=FAILED", 15, 700, 600, "next_cursor"),
    Bounded(f"{NS}/jobs?limit=500", 15, 300, 400, "next_cursor"),
    Bounded(f"{NS}/limits", 12, 50, 10),
    Bounded(f"{NS}/quotas", 65, 700, 10),
    Bounded(f"{NS}/apps/a2/messages?limit=500", 6, 20, 10),
    Bounded(f"{NS}/limits?name={LIMIT}", 15, 50, 20),
    Bounded(f"{NS}/dead-letters?limit=200", 20, 500, 200, "next_cursor"),
    Bounded(f"{NS}/reports?limit=500", 2, 2, 200, "next_cursor"),
    Bounded(
        f"{NS}/timeline?limit=5000&from=2026-03-01T12:00:00Z&to=2026-03-02T12:00:00Z", 80, 3_500, 300, "at_least"
    ),
    Bounded(f"{NS}/graph", 60, 4_500, 120, "at_least"),
    Bounded(f"{NS}/graph?around=dataset:demo.raw", 60, 4_500, 200, "at_least"),
    Bounded(f"{NS}/apps?limit=500", 3, 10, 10),
    Bounded(f"{NS}/apps/a1/workflows?limit=500", 3, 10, 10),
    Bounded(f"{NS}/apps/a1", 2, 2, 2),
    Bounded(f"{NS}/datasets?limit=500", 7, 300, 300, "next_cursor"),  # with the newest partition of each
    Bounded(f"{NS}/datasets/raw", 3, 3, 2),
    Bounded(f"{NS}/datasets/raw/partitions?limit=500&order=desc", 3, 100, 300, "next_cursor"),
    Bounded(f"{NS}/datasets/raw/partitions?limit=500&order=desc&from=10&to=9000", 8, 800, 300, "at_least"),
    Bounded(f"{NS}/datasets/raw/partition?values=7", 45, 500, 100, "at_least"),  # 20 for backfills
    Bounded(f"{NS}/reprocess?limit=100", 110, 150, 120, "next_cursor"),
    Bounded(f"{NS}/reprocess/r0000", 10, 10, 5),
    Bounded(OWN, 4, 4, 3),
    Bounded(f"{OWN}/why", 21, 60, 20),
    Bounded(f"{OWN}/preview?count=5", 6, 6, 3),
    Bounded(f"{OWN}/days?zone=Europe/Paris", 90, 4_000, 2, "at_least"),
    Bounded(f"{NS}/apps/a0/schedules/s0000/periods?from=2025-03-01T00:00:00Z&limit=500", 20, 650, 85),
    Bounded(f"{NS}/periods?from=2026-02-01&to=2026-03-02&q=a0.s000", 400, 1_000, 10),
    Bounded(f"{OWN}/runs?limit=100", 10, 250, 200, "next_cursor"),
    Bounded(f"{OWN}/jobs?limit=200", 10, 60, 200),
    Bounded(f"{OWN}/records?limit=200", 10, 300, 200, "next_cursor"),
    Bounded(f"{OWN}/versions?limit=100", 3, 20, 120, "next_cursor"),
    Bounded(f"{OWN}/backfills?limit=50", 60, 100, 50, "next_cursor"),
    Bounded(f"{NS}/apps/a0/schedules/s0000/jobs?limit=200", 10, 300, 300, "next_cursor"),
    Bounded(f"{NS}/apps/a0/schedules/s0000/why", 25, 450, 150),
    Bounded(f"{NS}/apps/a2/messages/note", 6, 10, 5),
    Bounded(f"{NS}/apps/a2/messages/note/why", 17, 30, 10),
    Bounded(f"{NS}/apps/a2/messages/note/runs?limit=50", 6, 20, 10),
    Bounded(f"/v1/jobs/{JOB}", 10, 250, 5),
    Bounded(f"/v1/jobs/{JOB}/why", 15, 250, 10),
    Bounded(f"/v1/runs/{LAST_RUN}", 10, 20, 20),
    Bounded(f"/v1/runs/{LAST_RUN}/why", 10, 20, 20),
    Bounded(f"/v1/runs/{LAST_RUN}/logs?attempt=1&lines=10000", 5, 5, 1_000),
    Bounded(f"/v1/runs/{LAST_RUN}/lineage", 60, 1_500, 100, "at_least"),
    Bounded(f"/v1/fires/{LARGE_FIRE}", 30, 400, 5),
    Bounded(f"/v1/fires/{LARGE_FIRE}/events?limit=500", 30, 400, 200, "next_cursor"),
    Bounded(f"{NS}/apps/d/dags?limit=500", 3, 5, 10),
    Bounded(DAG, 10, 20, 10),
    Bounded(f"{DAG}/why", 40, 400, 20),
    Bounded(f"{DAG}/runs?limit=30", 20, 400, 100, "next_cursor"),
    Bounded(f"{DAG}/runs/{DAG_RUN}", 10, 20, 10),
    Bounded(f"{NS}/pools/big", 5, 5, 3),
    Bounded(f"{NS}/policies/calm", 5, 5, 3),
    Bounded(f"{NS}/apps/a1/bulk", 12, 320, 30, body={
        "action": "pause", "mode": "hold", "dry_run": True, "names": [f"s{number:04d}" for number in range(100)],
    }),
    Bounded(f"{OWN}/backfills", 75, 3_300, 100, body={
        "partitions": {"from": {"n": "1"}, "to": {"n": "900"}}, "concurrency": 2, "dry_run": True,
    }),
    Bounded(f"{NS}/reprocess", 60, 1_500, 50, body={
        "run": LAST_RUN, "scope": "only", "concurrency": 2, "dry_run": True,
    }),
)  # fmt: skip


# Of a page of elements, at most 100 are read, a row each: `flow.dags.elements.MAX_SHOWN`.
ELEMENTS = "/v1/namespaces/{}/apps/{}/dags/{}/runs/{}/nodes/{}/elements"


def of_page() -> set[str]:
    """The paths that the page reads, with `{}` for each name."""
    found: set[str] = set()
    for file in (*PAGE.rglob("*.ts"), *PAGE.rglob("*.tsx")):
        if file.name in ("types.ts", "new-types.ts", "actions.ts"):  # actions change one thing each
            continue
        text = file.read_text()
        for name, value in re.findall(r'const ([A-Z]+) = "(/v1/[^"]*)"', text):
            text = text.replace(f"${{{name}}}", value)
        found |= set(re.findall(r'["`](/v1/[^"`?]*)["`]', text))
    return {re.sub(r"{[^}]*}", "{}", path) for path in found}
