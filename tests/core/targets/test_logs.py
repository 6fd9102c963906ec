"""Where the log of an EMR run is: in the folder that its start request names."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.core.targets.registry import of_run
from chalicelib.core.targets.target import Uploaded
from tests.core.builders import run


@pytest.mark.parametrize("logs", ["demo/", "", "sales/"])
def test_a_log_is_read_where_emr_was_told_to_write_it(logs: str) -> None:
    """A run that is older than the folders of namespaces has none."""
    started = run("STARTED", target_id="00app/jr1")
    started = replace(started, request=replace(started.request, logs=logs, target={**started.request.target, **_EMPTY}))
    adapter = EmrServerlessTarget(None, "00app", "arn:role", "control", pause=lambda _: None)
    monitoring = adapter.request(started)["configurationOverrides"]["monitoringConfiguration"]
    uri = monitoring["s3MonitoringConfiguration"]["logUri"]
    log = of_run(started).log_of(started)
    assert isinstance(log, Uploaded)
    assert uri == f"s3://control/logs/{logs}"
    assert f"s3://control/{log.folder}" == f"{uri}applications/00app/jobs/jr1/SPARK_DRIVER"


_EMPTY: dict[str, Any] = {
    "entry_point": "s3://code/job.py",
    "arguments": [],
    "py_files": [],
    "spark": {},
    "application_id": None,
    "execution_role_arn": None,
}
