"""`sluice prefixes`: list the owners of prefixes, give a prefix to a namespace, take it back (O14)."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PATH = "/v1/namespaces/beta/prefixes"
ITEM = {"bucket": "lake-bucket", "prefix": "raw/orders/", "namespace": "beta", "dataset": "beta.orders", "given": False}


def test_o14_prefixes_are_listed_with_owners(api: PlayedApi, sluice: Sluice) -> None:
    later = {**ITEM, "prefix": "raw/later/", "dataset": None, "given": True}
    api.lists["/v1/prefixes"] = [ITEM, later]
    result = sluice("prefixes", "list")
    lines = [line.split() for line in result.output.splitlines()]
    assert result.exit_code == 0
    assert ["raw/orders/", "beta", "beta.orders", "its", "dataset"] in lines
    assert ["raw/later/", "beta", "-", "an", "administrator"] in lines
    assert api.sent("GET", "/v1/prefixes")[0].query["bucket"] == "lake"
    assert '"given": true' in sluice("prefixes", "list", "acme", "--json").output
    assert api.sent("GET", "/v1/prefixes")[1].query["bucket"] == "acme"
    api.lists["/v1/prefixes"] = []
    assert "no prefix of lake has an owner" in sluice("prefixes", "list").output


@pytest.mark.parametrize("address", ["s3://lake/raw/orders/", "s3://lake/raw/orders"])
def test_o14_a_prefix_is_given_and_taken(api: PlayedApi, sluice: Sluice, address: str) -> None:
    api.play("PUT", PATH, {**ITEM, "given": True})
    api.play("DELETE", PATH, {})
    result = sluice("prefixes", "give", "beta", address, "--nested")
    assert "s3://lake-bucket/raw/orders/ belongs to namespace beta" in result.output
    assert api.sent("PUT", PATH)[0].body == {"bucket": "lake", "prefix": "raw/orders/", "nested": True}
    assert "no longer given to namespace beta" in sluice("prefixes", "take", "beta", address).output
    assert api.sent("DELETE", PATH)[0].query == {"bucket": "lake", "prefix": "raw/orders/"}


@pytest.mark.parametrize("address", ["s3://lake", "s3://lake/", "raw/orders/", "lake/raw/orders/", "s3:///raw/"])
def test_o14_an_address_without_a_prefix_is_wrong_usage(sluice: Sluice, address: str) -> None:
    result = sluice("prefixes", "give", "beta", address)
    assert result.exit_code == 2
    assert "expected s3://BUCKET/PREFIX/" in result.output and "list buckets" in result.output
