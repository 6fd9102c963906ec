"""The URLs of queues, and what is none."""

from __future__ import annotations

import pytest

from chalicelib.core.access.queue_urls import queue_arn

ACCOUNT = "123456789012"
REGIONAL = f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/orders"
LOCAL = "http://127.0.0.1:4566"
NO_URLS_OF_QUEUES = [
    f"{REGIONAL}/",
    f"{REGIONAL}/x",
    f"{REGIONAL}?x=1",
    f"{REGIONAL}#x",
    f"{REGIONAL}%20",
    f"{REGIONAL}.fifo.fifo",
    f"{REGIONAL}\n",
    REGIONAL.replace("https://", "http://"),
    REGIONAL.replace("//", "//a:b@"),
    REGIONAL.replace(".com", ".com:443"),
    REGIONAL.replace(".com", ".com."),
    REGIONAL.replace(".com/", ".com//"),
    REGIONAL.replace(".com", ".com.evil.example"),
    REGIONAL.replace(".com", ".com.cn"),
    REGIONAL.replace("sqs", "SQS"),
    REGIONAL.replace("https", "HTTPS"),
    REGIONAL.replace("eu-west-1", "eu-west-1.evil"),
    REGIONAL.replace("amazonaws.com", "api.amazonwebservices.com.cn"),
    REGIONAL.replace(ACCOUNT, "1234"),
    REGIONAL.replace(ACCOUNT, "\u0661" * 12),
    f"https://evil.example/{ACCOUNT}/orders",
    f"https://evil.example/sqs.eu-west-1.amazonaws.com/{ACCOUNT}/orders",
    f"https://vpce-0a.sqs.eu-west-1.vpce.evil.example/{ACCOUNT}/orders",
    f"{LOCAL}/{ACCOUNT}/orders",
    "orders",
    "",
]


@pytest.mark.parametrize(
    ("host", "partition", "region"),
    [
        ("sqs.eu-west-1.amazonaws.com", "aws", "eu-west-1"),
        ("sqs.ap-southeast-5.amazonaws.com", "aws", "ap-southeast-5"),
        ("sqs-fips.us-east-2.amazonaws.com", "aws", "us-east-2"),
        ("sqs.eu-west-1.api.aws", "aws", "eu-west-1"),
        ("sqs-fips.ca-central-1.api.aws", "aws", "ca-central-1"),
        ("eu-west-1.queue.amazonaws.com", "aws", "eu-west-1"),
        ("queue.amazonaws.com", "aws", "us-east-1"),
        ("vpce-0a1b-2c3d.sqs.eu-west-1.vpce.amazonaws.com", "aws", "eu-west-1"),
        ("vpce-0a1b-2c3d-eu-west-1a.sqs.eu-west-1.vpce.amazonaws.com", "aws", "eu-west-1"),
        ("sqs.cn-north-1.amazonaws.com.cn", "aws-cn", "cn-north-1"),
        ("cn-northwest-1.queue.amazonaws.com.cn", "aws-cn", "cn-northwest-1"),
        ("sqs.cn-north-1.api.amazonwebservices.com.cn", "aws-cn", "cn-north-1"),
        ("sqs.us-gov-west-1.amazonaws.com", "aws-us-gov", "us-gov-west-1"),
        ("sqs.us-gov-east-1.api.aws", "aws-us-gov", "us-gov-east-1"),
        ("sqs.eusc-de-east-1.amazonaws.eu", "aws-eusc", "eusc-de-east-1"),
        ("sqs.us-iso-east-1.c2s.ic.gov", "aws-iso", "us-iso-east-1"),
    ],
)
def test_o14_each_form_of_the_url_of_a_queue_names_its_arn(host: str, partition: str, region: str) -> None:
    for name in ("orders", "orders.fifo"):
        arn = f"arn:{partition}:sqs:{region}:{ACCOUNT}:{name}"
        assert queue_arn(f"https://{host}/{ACCOUNT}/{name}") == arn


@pytest.mark.parametrize("url", NO_URLS_OF_QUEUES)
def test_o14_any_other_url_names_no_queue(url: str) -> None:
    assert queue_arn(url) == url
    assert queue_arn(url, "http://10.0.0.1:4566") == url


def test_o14_a_url_of_the_configured_emulator_names_a_queue() -> None:
    arn = f"arn:*:sqs:*:{ACCOUNT}:orders"
    for host in ("127.0.0.1", "localhost"):
        assert queue_arn(f"http://{host}:4566/{ACCOUNT}/orders", LOCAL) == arn
        assert queue_arn(f"{LOCAL}/{ACCOUNT}/orders", f"http://{host}:4566") == arn
    for other in ("http://127.0.0.1:4567", "https://127.0.0.1:4566", "http://a@127.0.0.1:4566", "http://127.0.0.1"):
        assert queue_arn(f"{other}/{ACCOUNT}/orders", LOCAL) == f"{other}/{ACCOUNT}/orders"
    assert queue_arn(f"{LOCAL}/{ACCOUNT}/orders/", LOCAL) == f"{LOCAL}/{ACCOUNT}/orders/"
