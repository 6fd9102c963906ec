"""The emulator of EMR Serverless alone: it answers who signs with its key, and starts only with one."""

from __future__ import annotations

import urllib.error
import urllib.request

import boto3
import pytest
from botocore.exceptions import ClientError

from infra.local.emr_serverless import BadSetting
from tests.local.conftest import ROLE, Emulators


@pytest.mark.parametrize(("key", "code"), [("test", "SignatureDoesNotMatch"), ("x", "UnrecognizedClientException")])
def test_another_key_starts_no_job(emulators: Emulators, key: str, code: str) -> None:
    emr = emulators.start()
    other = boto3.client(
        "emr-serverless",
        "us-east-1",
        endpoint_url=emr.emulator.url,
        aws_access_key_id=key,
        aws_secret_access_key="wrong",
    )
    spark = {"sparkSubmit": {"entryPoint": "s3://code/job.py"}}
    with pytest.raises(ClientError) as refused:
        other.start_job_run(applicationId=emr.application, executionRoleArn=ROLE, jobDriver=spark)
    assert refused.value.response["Error"]["Code"] == code
    assert emr.boto.list_job_runs(applicationId=emr.application)["jobRuns"] == []


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://evil.example"}, {"Host": "evil.example"}])
@pytest.mark.parametrize("path", ["/applications", "/health"])
def test_a_web_page_or_another_host_is_refused(emulators: Emulators, headers: dict[str, str], path: str) -> None:
    emr = emulators.start()
    request = urllib.request.Request(emr.emulator.url + path, headers=headers)
    if path == "/health" and not headers:
        assert urllib.request.urlopen(request, timeout=5).status == 200
        return
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    assert refused.value.code == (421 if "Host" in headers else 403)


def test_without_a_key_of_its_own_it_does_not_start(emulators: Emulators, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(BadSetting, match="expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        emulators.start()
