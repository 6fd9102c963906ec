"""Shared by the tests of bad input: documents in parts, and a refusal that must store nothing."""

from typing import Any

from tests.web.conftest import APP, WEEKDAYS, Api

ONE = f"{APP}/schedules/nightly"
DATASET = {"bucket": "lake", "prefix": "raw/orders/", "keys": ["day", "shop-id"]}
WORKFLOW = {"target": {"type": "sqs", "queue_url": "https://sqs.example/target"}}
EMR = {"type": "emr_serverless", "entry_point": "s3://code/refine.py"}


def refused(api: Api, status: int, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    """The error of a request that must leave every table unchanged."""
    before = api.everything()
    error = api.refused(status, method, path, body, **headers)
    assert api.everything() == before
    assert error["message"]
    return error


def schedule(**changed: Any) -> dict[str, Any]:
    return {"workflow": "notify", "trigger": WEEKDAYS} | changed


def time(expression: Any, **more: Any) -> dict[str, Any]:
    return schedule(trigger={"type": "time", "expression": expression, **more})


def partition(dataset: str, **more: Any) -> dict[str, Any]:
    return {"type": "partition", "dataset": dataset, **more}


def after(workflow: str) -> dict[str, Any]:
    return {"type": "program_status", "workflow": workflow}
