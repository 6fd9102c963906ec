"""The host for which an upload is signed. Signing makes no call, so these are the hosts of AWS itself."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from chalicelib import wiring
from chalicelib.aws.s3.payloads import S3Payloads
from infra.sdk import SERVICES

BUCKET = "sluice-prod-control-123456789012"


def in_region(region: str, monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    """The environment of a Lambda in a region."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    known = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": region, "AWS_REGION": region}
    for name, value in {**known, "AWS_CONFIG_FILE": "/dev/null", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)


def host_of_upload(region: str, monkeypatch: pytest.MonkeyPatch, bucket: str = BUCKET, **environment: str) -> str:
    in_region(region, monkeypatch, **environment)
    url = urlsplit(S3Payloads(wiring.signing_s3(), bucket).upload_url("demo.shop", "0a1b", 900))
    assert f"%2F{region}%2Fs3%2Faws4_request" in url.query
    assert url.path.endswith("/uploads/demo.shop/0a1b.json")
    return url.netloc + url.path.removesuffix("/uploads/demo.shop/0a1b.json")


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "s3.amazonaws.com"),
        ("us-east-2", "s3.us-east-2.amazonaws.com"),
        ("eu-west-1", "s3.eu-west-1.amazonaws.com"),
        ("ap-southeast-5", "s3.ap-southeast-5.amazonaws.com"),
        ("il-central-1", "s3.il-central-1.amazonaws.com"),
        ("us-gov-west-1", "s3.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "s3.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_an_upload_is_signed_for_the_host_of_its_region(
    region: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3's global host answers a PUT for a bucket of another region with 307, and with 400 for regions opened since
    March 2019: https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html"""
    assert host_of_upload(region, monkeypatch) == f"{BUCKET}.{host}"


def test_a_bucket_with_dots_in_its_name_stays_in_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_of_upload("eu-west-1", monkeypatch, "acme.control") == "s3.eu-west-1.amazonaws.com/acme.control"


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("endpoint", ["127.0.0.1:4566", "localhost:4566", "minio.acme.example"])
def test_a_custom_endpoint_keeps_its_own_host(variable: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = host_of_upload("us-east-1", monkeypatch, **{variable: f"http://{endpoint}"})
    assert found == f"{endpoint}/{BUCKET}"


@pytest.mark.parametrize("region", ["eu-west-1", "il-central-1", "cn-north-1"])
def test_every_client_calls_its_own_region(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A global host would answer from elsewhere. Tokens of the global STS are not valid in regions that an account opts
    into: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_enable-regions.html"""
    in_region(region, monkeypatch)
    hosts = {name: urlsplit(wiring.client(name).meta.endpoint_url).netloc for name in sorted(SERVICES)}
    assert {name: host for name, host in hosts.items() if f".{region}." not in host} == {}
