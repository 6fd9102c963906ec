# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""On the local cloud a run is a query of Athena, whose rows are in S3 (W22)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from tests.e2e.test_target_roles import ACCOUNT, Team
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = [pytest.mark.cloud, pytest.mark.long]


class Reports(Team):
    """A namespace with a workgroup and a bucket for results, and a role that may use both."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(endpoints)
        self.athena, self.s3 = endpoints.client("athena"), endpoints.client("s3")
        self.workgroup, self.bucket = f"sluice-target-{self.name}", f"results-{self.name}"
        self.s3.create_bucket(Bucket=self.bucket)
        self.athena.create_work_group(Name=self.workgroup)

    def query(self, text: str, *parameters: Any) -> dict[str, Any]:
        output = f"s3://{self.bucket}/rows/"
        return {
            "type": "athena",
            "query": text,
            "parameters": parameters,
            "workgroup": self.workgroup,
            "output": output,
        }

    def remove(self) -> None:
        super().remove()
        self.athena.delete_work_group(WorkGroup=self.workgroup)
        for each in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", ()):
            self.s3.delete_object(Bucket=self.bucket, Key=each["Key"])
        with contextlib.suppress(Exception):
            self.s3.delete_bucket(Bucket=self.bucket)


@pytest.fixture
def reports(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reports]:
    with Reports.living(cloud, monkeypatch) as made:
        yield made


def test_w22_a_run_hands_on_the_rows_of_its_query(reports: Reports) -> None:
    reports.assumes(
        workgroup=[f"arn:aws:athena:{ACCOUNT}:workgroup/{reports.workgroup}"],
        data=[f"arn:aws:s3:::{reports.bucket}/*"],
    )
    target = reports.query("SELECT v FROM (VALUES ('a'), ('O''Hare')) t(v) WHERE v = ?", "O'Hare")
    reports.runs(target)
    done = reports.run(lambda run: run["state"] == "SUCCEEDED")
    key = done["result"]["output"].removeprefix(f"s3://{reports.bucket}/")
    assert reports.s3.get_object(Bucket=reports.bucket, Key=key)["Body"].read() == b"v\r\nO'Hare\r\n"
    listed = reports.athena.list_query_executions(WorkGroup=reports.workgroup)["QueryExecutionIds"]
    assert listed == [done["target_id"]]

    reports.runs(reports.query("SELECT * FROM nothing"))
    failed = reports.run(lambda run: run["state"] == "FAILED")
    assert "nothing" in failed["reason"]


def test_w22_a_query_of_another_workgroup_is_refused(reports: Reports) -> None:
    reports.assumes(workgroup=[f"arn:aws:athena:{ACCOUNT}:workgroup/of-others"])
    reports.runs(reports.query("SELECT 1"))
    failed = reports.run(lambda run: run["state"] == "FAILED")
    assert "not authorized to perform: athena:StartQueryExecution" in failed["reason"]
