"""emitters: registrations and fires per second with 1, 3 and 5 emitters at once, on one local cloud (E9).

*Registrations*: as many clients each put their own schedules, one request at a time. *Fires*: as many invocations of
Lambda `tick` at once, over the same schedules, all due within the minute. Before, as many invocations have started the
Lambdas. The benchmark shows that no fire is lost or doubled: the messages at the target are counted. The regular tick
is one more emitter."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

from botocore.config import Config
from rich.table import Table

from benchmarks.burst import WORKFLOW, shot
from benchmarks.cloud import Running, own_cloud
from benchmarks.loader import load
from benchmarks.measurement import Results
from benchmarks.product import APP, NAMESPACE, deploy, ports_of
from benchmarks.progress import Progress
from benchmarks.target_queue import TargetQueue, figures
from chalicelib.core.instants import SECOND
from sluice.client import Client

COUNTS = (1, 3, 5)
REGISTRATIONS = int(os.environ.get("SLUICE_BENCH_REGISTRATIONS", "60"))
FIRES = int(os.environ.get("SLUICE_BENCH_FIRES", "500"))
AHEAD_S = 45
PATIENCE_S = 75.0
# The event of the minute rule. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-run-lambda-schedule.html
MINUTE_EVENT = {
    "version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "detail-type": "Scheduled Event",
    "source": "aws.events", "account": "000000000000", "time": "2026-03-02T12:00:00Z", "region": "us-east-1",
    "resources": [], "detail": {},
}  # fmt: skip


def measure(progress: Progress) -> Results:
    progress("starting a cloud")
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "emitters")
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        found = []
        for emitters in progress.each(COUNTS, lambda emitters: f"{emitters} at once"):
            progress("registering")
            registered = register(cloud, emitters)
            progress("firing")
            seconds, counted = fire(cloud, queue, emitters)
            found.append(entry(emitters, registered, seconds, counted))
    return {"emitters": found}


def entry(emitters: int, registered: float, seconds: float, counted: dict[str, Any]) -> dict[str, Any]:
    """``registered`` and ``seconds``: the duration of all registrations, and of all emitters until the last has
    ended."""
    return {
        "emitters": emitters,
        "registrations_per_second": round(REGISTRATIONS / registered, 1),
        "fires_per_second": round(FIRES / seconds, 1),
        "fires": FIRES,
        "missed": counted["missed"],
        "doubled": counted["doubled"],
    }


def register(cloud: Running, clients: int) -> float:
    def put(client: int) -> None:
        api = Client.from_environment()
        for number in range(client, REGISTRATIONS, clients):
            name = f"r{clients}x{number}"
            api.put(f"/v1/namespaces/{NAMESPACE}/apps/{APP}/schedules/{name}", shot(WORKFLOW, 86_400))

    with patch.dict(os.environ, cloud.endpoints.environment()):
        return _together(clients, put)


def fire(cloud: Running, queue: TargetQueue, emitters: int) -> tuple[float, dict[str, Any]]:
    _together(emitters, lambda _: _tick(cloud))  # starts the Lambdas, so that no cold start is measured
    ports = ports_of(cloud)
    names = [f"{NAMESPACE}.{APP}.f{emitters}x{number:04d}" for number in range(FIRES)]
    load(ports.ledger, names, shot(WORKFLOW, AHEAD_S), ports.clock.now() // SECOND * SECOND)
    begun = time.monotonic()
    seconds = _together(emitters, lambda _: _tick(cloud))
    time.sleep(max(0.0, AHEAD_S - (time.monotonic() - begun)))
    queue.wait_for(FIRES, PATIENCE_S, lambda _: None)
    time.sleep(2)  # time for duplicates to arrive
    return seconds, figures(queue.drain(), FIRES)


def _tick(cloud: Running) -> None:
    endpoints = cloud.endpoints
    patient = Config(read_timeout=70, retries={"total_max_attempts": 1})
    lambdas = endpoints.session().client("lambda", config=patient)
    answer = lambdas.invoke(FunctionName=endpoints.outputs["TickFunction"], Payload=json.dumps(MINUTE_EVENT))
    if answer.get("FunctionError"):
        raise RuntimeError(f"expected a tick, got {answer['Payload'].read()[:500]!r}")


def _together(count: int, act: Any) -> float:
    """Run all at once; return the seconds until the last has ended."""
    begun = time.monotonic()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(act, range(count)))
    return time.monotonic() - begun


def tables(results: Results) -> list[Table]:
    title = "emitters: at once, on one local cloud"
    heads = ("emitters", "registrations a second", "fires prepared a second", "fires", "missed", "doubled")
    table = Table(*heads, title=title, title_justify="left")
    for one in results["emitters"]:
        names = ("emitters", "registrations_per_second", "fires_per_second", "fires", "missed", "doubled")
        table.add_row(*(str(one[name]) for name in names))
    return [table]
