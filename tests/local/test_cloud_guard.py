# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""The local cloud answers only programs that have its key: no web page, no other host, no other key."""

from __future__ import annotations

import json
import os
import stat
import urllib.error
import urllib.request
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from infra.local import cloud as local_cloud
from infra.local import developer
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout, write_private

# Imported, so that it replaces the fixture of this name in conftest.py, which is only an S3.
from tests.support.cloud import cloud  # noqa: F401 - a fixture

SERVERS = pytest.mark.parametrize("service", ["sqs", "emr-serverless"])


def ask(
    cloud: Endpoints, service: str, method: str = "GET", path: str = "", *, sign: bool = True, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body. A header that is given replaces the one of the program, such as `Host`."""
    url = cloud.emr_url if service == "emr-serverless" else cloud.aws_url
    where = path or ("/applications" if service == "emr-serverless" else "/?Action=ListQueues")
    host = headers.pop("Host", urlsplit(url).netloc)
    sent = {"Host": host}
    if sign:
        request = AWSRequest(method, f"http://{host}{where}")
        SigV4Auth(Credentials(cloud.access_key, cloud.secret_key), service, cloud.region).add_auth(request)
        sent |= dict(request.headers)
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request(method, where, headers={**sent, **headers})
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def client(cloud: Endpoints, service: str, key: str, secret: str) -> Any:
    return boto3.client(
        service,
        cloud.region,
        endpoint_url=cloud.emr_url if service == "emr-serverless" else cloud.aws_url,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )


def call(cloud: Endpoints, service: str, key: str, secret: str) -> Any:
    made = client(cloud, service, key, secret)
    return made.list_applications() if service == "emr-serverless" else made.list_queues()


@SERVERS
@pytest.mark.cloud
def test_who_has_the_key_is_answered(cloud: Endpoints, service: str) -> None:
    call(cloud, service, cloud.access_key, cloud.secret_key)
    assert ask(cloud, service)[0] == 200
    for host in ("localhost", "[::1]"):
        port = urlsplit(cloud.emr_url if service == "emr-serverless" else cloud.aws_url).port
        assert ask(cloud, service, Host=f"{host}:{port}")[0] == 200


@SERVERS
@pytest.mark.parametrize("key", ["test", "000000000000", "AKIA0123456789ABCDEF", "own", "root"])
@pytest.mark.cloud
def test_a_wrong_key_or_secret_is_refused(cloud: Endpoints, service: str, key: str) -> None:
    root = developer.root_key(Layout())
    assert root is not None
    names = {"own": cloud.access_key, "root": root.access_key}
    with pytest.raises(ClientError) as refused:
        call(cloud, service, names.get(key, key), "test")
    expected = "SignatureDoesNotMatch" if key in names else "UnrecognizedClientException"
    assert refused.value.response["Error"]["Code"] == expected
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@SERVERS
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.cloud
def test_a_request_without_a_signature_is_refused(cloud: Endpoints, service: str, method: str) -> None:
    for path in (
        "",
        "/",
        "/_ministack/reset",
        "/_ministack/sqs/messages",
        f"/{cloud.outputs['LakeBucket']}?list-type=2",
    ):
        status, headers, _ = ask(cloud, service, method, path, sign=False)
        assert (status, headers["x-amzn-errortype"]) == (403, "MissingAuthenticationToken"), path


@SERVERS
@pytest.mark.parametrize("sign", [True, False])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:8484"])
@pytest.mark.cloud
def test_a_web_page_is_refused(cloud: Endpoints, service: str, sign: bool, origin: str) -> None:
    ready = "/health" if service == "emr-serverless" else "/_ministack/ready"
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-amz-date"}
    for method, path in (("GET", ""), ("OPTIONS", ""), ("POST", "/_ministack/reset"), ("GET", ready)):
        status, headers, _ = ask(cloud, service, method, path, sign=sign, **asked)
        assert (status, headers["x-amzn-errortype"]) == (403, "ForeignPage"), (method, path)
        assert not [name for name in headers if name.startswith("access-control-")]


@SERVERS
@pytest.mark.cloud
def test_another_host_is_refused(cloud: Endpoints, service: str) -> None:
    """A page whose name resolves to 127.0.0.1 is of the same origin as the port: its browser sends the page's name."""
    ready = "/health" if service == "emr-serverless" else "/_ministack/ready"
    port = urlsplit(cloud.emr_url if service == "emr-serverless" else cloud.aws_url).port
    for host in (
        f"evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"lake.localhost:{port}",
        f"127.0.0.1.nip.io:{port}",
    ):
        for path in ("", ready):
            status, headers, _ = ask(cloud, service, path=path, Host=host)
            assert (status, headers["x-amzn-errortype"]) == (421, "WrongHost"), (host, path)


@SERVERS
@pytest.mark.cloud
def test_no_answer_is_for_web_pages(cloud: Endpoints, service: str) -> None:
    status, headers, _ = ask(cloud, service)
    assert status == 200
    assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.cloud
def test_only_the_check_whether_a_server_is_ready_needs_no_key(cloud: Endpoints) -> None:
    for service, path in (("sqs", "/_ministack/ready"), ("emr-serverless", "/health")):
        assert ask(cloud, service, path=path, sign=False)[0] == 200
        assert ask(cloud, service, "POST", path=path, sign=False)[0] == 403


@pytest.mark.cloud
def test_an_old_request_is_refused(cloud: Endpoints) -> None:
    url = f"{cloud.aws_url}/?Action=ListQueues"
    request = AWSRequest("GET", url)
    signer = SigV4Auth(Credentials(cloud.access_key, cloud.secret_key), "sqs", cloud.region)
    request.context["timestamp"] = "20260302T120000Z"
    request.headers["X-Amz-Date"] = "20260302T120000Z"
    request.headers["Host"] = urlsplit(url).netloc
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    signer._inject_signature_to_request(request, signature)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, headers=dict(request.headers)), timeout=30)
    assert (refused.value.code, refused.value.headers["x-amzn-ErrorType"]) == (403, "RequestTimeTooSkewed")


@pytest.mark.cloud
def test_a_changed_body_is_refused(cloud: Endpoints) -> None:
    url = f"{cloud.aws_url}/"
    request = AWSRequest("POST", url, data=b"Action=ListQueues")
    SigV4Auth(Credentials(cloud.access_key, cloud.secret_key), "sqs", cloud.region).add_auth(request)
    sent = urllib.request.Request(url, b"Action=CreateQueue&QueueName=x", dict(request.headers), method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(sent, timeout=30)
    assert (refused.value.code, refused.value.headers["x-amzn-ErrorType"]) == (403, "SignatureDoesNotMatch")


@pytest.mark.cloud
def test_a_signed_address_of_an_object_works_while_it_is_valid(cloud: Endpoints) -> None:
    s3 = cloud.session().client("s3", config=Config(signature_version="s3v4", s3={"addressing_style": "path"}))
    where = {"Bucket": cloud.outputs["ControlBucket"], "Key": "guard/a b+c.json"}
    put = s3.generate_presigned_url("put_object", Params=where, ExpiresIn=60)
    with urllib.request.urlopen(urllib.request.Request(put, b"kept", method="PUT"), timeout=30) as answer:
        assert answer.status == 200
    assert s3.get_object(**where)["Body"].read() == b"kept"
    for wrong in (put.replace("X-Amz-Signature=", "X-Amz-Signature=0"), put.replace("c.json", "d.json")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(wrong, b"no", method="PUT"), timeout=30)
        assert refused.value.code == 403
    s3.delete_object(**where)


@pytest.mark.cloud
def test_a_large_object_arrives_whole(cloud: Endpoints) -> None:
    s3, bucket, content = cloud.client("s3"), cloud.outputs["ControlBucket"], os.urandom(9_000_000)
    s3.put_object(Bucket=bucket, Key="guard/large", Body=content)
    assert s3.get_object(Bucket=bucket, Key="guard/large")["Body"].read() == content
    s3.delete_object(Bucket=bucket, Key="guard/large")


@pytest.mark.cloud
def test_only_the_owner_may_read_the_files_of_the_cloud(cloud: Endpoints) -> None:
    layout = Layout()
    assert stat.S_IMODE(layout.home.stat().st_mode) == 0o700
    names = ("root.json", "developer.json", "callers.json", "endpoints.env")
    assert {name: stat.S_IMODE((layout.home / name).stat().st_mode) for name in names} == dict.fromkeys(names, 0o600)


@pytest.mark.cloud
def test_each_checkout_has_keys_of_its_own(cloud: Endpoints, tmp_path: Path) -> None:
    root = developer.root_key(Layout())
    other = developer.make_root_key(Layout(tmp_path))
    assert root is not None
    assert root.secret_key != other.secret_key
    assert developer.make_root_key(Layout(tmp_path)) == other
    assert cloud.secret_key not in (root.secret_key, "test")
    assert root.secret_key not in json.dumps(cloud.environment())


def test_a_file_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.env"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_the_file_for_shells_has_the_bucket_of_the_lake(tmp_path: Path) -> None:
    outputs = {"ApiUrl": "http://127.0.0.1:4566/api", "LakeBucket": "sluice-local-lake"}
    Endpoints("http://127.0.0.1:4566", "http://127.0.0.1:4570", "key", "secret", outputs).write(tmp_path / "env")
    assert "export SLUICE_LAKE_BUCKET=sluice-local-lake\n" in (tmp_path / "env").read_text()


@pytest.mark.cloud
def test_up_says_who_can_run_code(cloud: Endpoints, capsys: pytest.CaptureFixture[str]) -> None:
    assert local_cloud.main(["up"]) == 0
    said = capsys.readouterr().out
    assert "The local cloud runs code for every program that has the key in .local/endpoints.env." in said
    assert cloud.secret_key not in said
