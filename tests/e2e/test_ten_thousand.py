"""A trigger of ten thousand partitions, on tables with the limits of DynamoDB (T7, T17)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.ingest.objects import register
from infra.local.endpoints import Endpoints
from tests.support.cloud_world import CloudWorld
from tests.support.schedules import partitions
from tests.support.world import flights

pytestmark = [pytest.mark.cloud, pytest.mark.long]

MANY = 10_000
BATCH_SIZE = 4  # threads: side by side they lose races for the one job, as Lambdas do
MAX_ITEM = 3_000  # bytes; a row that grew with every partition would have some hundred thousand


@pytest.fixture
def scene(cloud: Endpoints) -> Iterator[CloudWorld]:
    world = CloudWorld(cloud)
    yield world
    world.close()


def test_t7_ten_thousand_partitions_make_one_run_with_all(scene: CloudWorld) -> None:
    scene.deploy(flights({"a": partitions(MANY)}))
    definition = scene.ports.rows.get(Definition, "dataset", "demo.flights")
    assert definition is not None
    dataset = Dataset.model_validate(definition.document)

    def arrive(number: int) -> None:
        values = (str(number // 10_000), str(number // 100 % 100), str(number % 100))
        register(scene.ports, "demo.flights", dataset, values, scene.clock.now(), f"k{number}")

    with ThreadPoolExecutor(BATCH_SIZE) as pool:
        list(pool.map(arrive, range(MANY - 1)))
    [job] = scene.jobs("a")
    assert (job.leaves["0"].count, job.met_at) == (MANY - 1, None)
    assert max(scene.item_sizes("jobs_table")) < MAX_ITEM
    arrive(MANY - 1)
    scene.settle()

    [run] = scene.runs("a")
    manifest = scene.context(run)["manifest"]
    assert len(read(scene, manifest)) == MANY
    assert max(scene.item_sizes("runs_table")) < MAX_ITEM


def read(scene: CloudWorld, uri: str) -> set[tuple[Any, ...]]:
    """The partitions that a manifest lists, each once."""
    listed = scene.payloads.manifests[uri.rpartition("/")[2].removesuffix(".jsonl")]
    return {tuple(event["partition"].values()) for event in listed}
