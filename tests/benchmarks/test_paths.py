"""Each path of the cost benchmark launches what it says, through the service's own handlers."""

from __future__ import annotations

import pytest

from benchmarks.cost.paths import APP, PATHS, Path
from benchmarks.cost.plant import Plant, fresh_tables


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_each_path_of_cost_launches_its_runs(path: Path) -> None:
    plant = Plant(*fresh_tables())
    plant.deploy({**APP, "schedules": path.schedules})
    path.repeat(plant, 0)
    before = plant.launched
    path.repeat(plant, 1)
    assert plant.launched - before == len(path.schedules) * path.each


@pytest.mark.parametrize(
    ("name", "events", "receiver"),
    [("cron_to_sqs", 1, "check"), ("batch_to_sqs", 100, "check"), ("batch_to_sqs", 400, "burst")],
)
def test_a_path_is_priced_at_the_lambda_of_its_queue(name: str, events: int, receiver: str) -> None:
    """The two Lambdas have different memory."""
    path = next(path for path in PATHS if path.name == name)
    (schedule,) = path.schedules.values()
    spread = {"spread": {"count": events}} if events > 1 else {}
    plant = Plant(*fresh_tables())
    plant.deploy({**APP, "schedules": {"notify": schedule | spread}})
    path.repeat(plant, 0)
    path.repeat(plant, 1)
    invoked = {call for call in plant.tally.calls if call.startswith("lambda:")}
    assert invoked == {"lambda:tick", f"lambda:{receiver}"}
