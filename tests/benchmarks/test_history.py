"""The capacity model and the growth of the history, computed only from the results (W11)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from benchmarks import history
from benchmarks.history import capacity
from benchmarks.machine import ROOT

PATHS = ("cron_to_emr", "partition_to_emr", "cron_to_sqs", "batch_to_sqs")


def results(**more: Any) -> dict[str, Any]:
    one = {
        "write_units": 10.0, "read_units": 4.0, "lambda_gb_s": 0.5, "usd_per_million": 20.0,
        "calls": {"sqs:SendMessage": 2.0, "dynamodb:GetItem": 9.0}, "writes": [{"row": "RUN", "bytes": 1000}],
    }  # fmt: skip
    return {"cost": [{"path": path, **copy.deepcopy(one)} for path in PATHS], **more}


def size(rows: int, cpu: float) -> dict[str, Any]:
    step = {"seconds": cpu / 2, "cpu_seconds": cpu, "peak_mb": 1000, "rows_per_second": 1}
    steps = dict.fromkeys(history.STEPS, step)
    return {"rows": rows, "raw_mb": rows / 10_000, "parquet_mb": rows / 20_000, "objects": 1, "files": 1, **steps}


def figures(found: dict[str, Any]) -> dict[str, str]:
    return {line.what: line.figure for line in capacity.model(found)}


def test_w11_the_model_follows_from_the_cost_of_each_path() -> None:
    answer = figures(results())
    assert answer["jobs a day"] == "1,000,000"
    assert answer["EMR starts"] == "0.93 a second, 93% of the quota"
    assert answer["DynamoDB writes"] == "10.0 M units, 116 a second"
    assert answer["SQS"] == "2.0 M requests"
    assert answer["dollars a day"] == "$20.00"
    dearer = results()
    dearer["cost"][2]["write_units"] = 20.0
    assert figures(dearer)["DynamoDB writes"] == "14.6 M units, 169 a second"


def test_w11_the_table_has_180_million_rows_of_the_measured_size() -> None:
    answer = figures(results())
    assert answer["rows kept"] == "180 M"
    # 1,000 bytes plus 100 of overhead, and three index entries of 260 and 100
    assert answer["runs table"] == "392 GB, $98 a month"


def test_w11_emr_time_for_180_million_rows_is_scaled_by_growth() -> None:
    found = results(history={"sizes": [size(2_000_000, 100.0), size(20_000_000, 280.0)]})
    assert figures(found)["compact, 180 M rows"].startswith("0.5 vCPU-hours")
    assert figures(found)["compact, at once"] == "1 min on 40 vCPUs with 160 GB"


def test_w11_the_jobs_may_use_the_vcpus_of_the_model() -> None:
    workflows = yaml.safe_load((ROOT / "sluice/system_app.yaml").read_text())["workflows"]
    spark = workflows["compact"]["target"]["spark"]
    executors, cores = (int(spark[f"spark.{name}"]) for name in ("dynamicAllocation.maxExecutors", "executor.cores"))
    assert executors * cores == capacity.MAX_VCPUS


def test_w11_without_the_cost_of_a_run_there_is_no_model() -> None:
    assert capacity.model({}) == []


@pytest.mark.parametrize("name", ["compact", "report"])
def test_the_growth_is_from_the_first_size_to_the_last(name: str) -> None:
    grown = history._growth([size(2, 10.0), size(20, 40.0)])
    assert (grown["rows"], grown[f"{name}_cpu_seconds"], grown[f"{name}_peak_mb"]) == (10.0, 4.0, 1.0)


def played(jobs: int, **fields: Any) -> dict[str, Any]:
    return {
        "jobs": jobs,
        "seconds": 3.3,
        "per_second": 3000.0,
        "lateness_ms": {"p99": 20},
        "missed": 0,
        "doubled": 0,
        **fields,
    }


def test_w11_the_model_is_shown_beside_the_measurement() -> None:
    answer = figures(results(steady=played(720, offered_per_second=12), burst=played(10_000, missed=1)))
    assert answer["12 deliveries a second, 1.04 M a day"] == "p99 20 ms late, 0 missed, 0 doubled"
    assert answer["10,000 due at one instant"] == "all in 3.3 s, 1 missed, 0 doubled"
    # The results of a burst of another size do not show this.
    assert "10,000 due at one instant" not in figures(results(burst=played(1_000)))
