"""The capacity that a run uses, and how runs wait for an application's maximum capacity and for this machine."""

from __future__ import annotations

import pytest

from infra.local.emr_serverless import resources, spark_parameters
from tests.local.conftest import Emulators

LONG_MS = 60_000
SMALL = "--conf spark.driver.cores=1 --conf spark.executor.cores=1 --conf spark.executor.instances=1"
LARGE = "--conf spark.driver.cores=2 --conf spark.executor.cores=2 --conf spark.executor.instances=1"


@pytest.mark.parametrize(
    ("parameters", "vcpus"),
    [
        ("", 4 + 3 * 4),
        (SMALL, 2),
        ("--driver-cores 2 --executor-cores=2 --num-executors 5", 12),
        ("--conf spark.dynamicAllocation.initialExecutors=1", 8),
        ("--conf spark.dynamicAllocation.maxExecutors=2", 12),
        ("--conf spark.dynamicAllocation.enabled=false --conf spark.executor.instances=2", 12),
    ],
)
def test_the_vcpus_of_run_are_those_of_its_driver_and_executors(parameters: str, vcpus: int) -> None:
    assert resources.need(spark_parameters.parse(parameters).properties).vcpus == vcpus


def test_memory_is_counted_with_overhead_for_at_least_a_minute() -> None:
    need = resources.need({"spark.executor.instances": "1", "spark.driver.memory": "1G", "spark.executor.memory": "1g"})
    assert need.memory_gb == pytest.approx(2.2)
    assert need.billed(1).memory_gb_hours == pytest.approx(2.2 / 60, abs=0.001)
    assert need.over(3600).vcpu_hours == 8


def test_runs_beyond_the_maximum_capacity_wait_in_order(emulators: Emulators) -> None:
    emr = emulators.start({"maximumCapacity": {"cpu": "6 vCPU", "memory": "64 GB"}}, instant_ms=LONG_MS, max_running=9)
    first, large, small = emr.start(spark=LARGE), emr.start(spark=LARGE), emr.start(spark=SMALL)
    emr.reaches(first, "RUNNING")
    # The small one would fit beside the first, but must not overtake the large one in front of it.
    emr.holds(running=1, waiting=2)
    assert [emr.state(large), emr.state(small)] == ["PENDING", "PENDING"]
    emr.cancel(first)
    emr.reaches(large, "RUNNING")
    emr.reaches(small, "RUNNING")


def test_one_full_application_does_not_block_another(emulators: Emulators) -> None:
    emr = emulators.start({"maximumCapacity": {"cpu": "2 vCPU", "memory": "16 GB"}}, instant_ms=LONG_MS, max_running=9)
    emr.reaches(emr.start(spark=SMALL), "RUNNING")
    emr.start(spark=SMALL)
    emr.holds(running=1, waiting=1)
    emr.application = emr.boto.create_application(type="SPARK", releaseLabel="emr-7.1.0")["applicationId"]
    emr.reaches(emr.start(spark=SMALL), "RUNNING")


def test_a_run_that_asks_for_too_many_executors_gets_the_rest(emulators: Emulators) -> None:
    emr = emulators.start({"maximumCapacity": {"cpu": "4", "memory": "16 GB"}})
    emr.reaches(emr.start(spark="--num-executors 100"), "SUCCESS")


def test_a_driver_that_can_never_fit_fails_the_run(emulators: Emulators) -> None:
    emr = emulators.start({"maximumCapacity": {"cpu": "2 vCPU", "memory": "16 GB"}})
    run = emr.reaches(emr.start(), "FAILED")
    assert run["stateDetails"] == "The driver needs 4 vCPU, the application has at most 2."


def test_the_machine_bounds_the_runs_of_all_applications(emulators: Emulators) -> None:
    emr = emulators.start(max_running=2, max_vcpus=1000, instant_ms=LONG_MS)
    runs = [emr.start() for _ in range(3)]
    emr.reaches(runs[1], "RUNNING")
    emr.holds(running=2, waiting=1)
    emr.cancel(runs[0])
    emr.reaches(runs[2], "RUNNING")
