"""The owners of prefixes over HTTP: who gives them, what authors are told, and what is on record (O14)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from chalicelib.wiring import ports
from tests.web.conftest import NS, Api
from tests.web.signed import Signer, enforcing, member, role

PLATFORM, ANA, BOB = Signer(role("platform")), Signer(role("ana")), Signer(role("bob"))
BETA = "/v1/namespaces/beta"
OUTER, INNER = "raw/orders/", "raw/orders/day=02/"


@pytest.fixture
def enforced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Namespaces demo, of ana, and beta, of bob. A dataset of demo is in ``raw/flights/`` already."""
    api.put(BETA)
    for space, name in ((NS, "ana"), (BETA, "bob")):
        api.put(f"{space}/access", {"members": [{"member": member(name), "roles": ["admin"]}]})
    enforcing(monkeypatch)
    return api


def dataset(prefix: str) -> dict[str, Any]:
    return {"bucket": "lake", "prefix": prefix, "keys": ["hour"]}


def given(prefix: str, **more: Any) -> dict[str, Any]:
    return {"bucket": "lake", "prefix": prefix, **more}


def listed(signer: Signer = PLATFORM) -> dict[str, str]:
    status, page = signer.send("GET", "/v1/prefixes?limit=100")
    assert status == 200, page
    return {item["prefix"]: item["namespace"] for item in page["items"]}


def taken(prefix: str) -> str:
    return f"{BETA}/prefixes?bucket=lake&prefix={quote(prefix, safe='')}"


@pytest.mark.usefixtures("enforced")
def test_o14_only_administrators_give_list_and_take_prefixes() -> None:
    for signer in (ANA, BOB):
        assert signer.error("PUT", f"{BETA}/prefixes", given(OUTER))["code"] in ("forbidden", "not_found")
        assert signer.error("DELETE", taken(OUTER))["code"] in ("forbidden", "not_found")
        assert signer.error("GET", "/v1/prefixes")["code"] == "forbidden"
    assert PLATFORM.send("PUT", f"{BETA}/prefixes", given(OUTER)) == (
        201,
        {"bucket": ports().settings.lake_bucket, "prefix": OUTER, "namespace": "beta", "dataset": None, "given": True},
    )
    assert PLATFORM.status("PUT", f"{BETA}/prefixes", given(OUTER)) == 200
    assert listed()[OUTER] == "beta"
    assert PLATFORM.status("DELETE", taken(OUTER)) == 204
    assert PLATFORM.error("DELETE", taken(OUTER))["code"] == "not_found"
    assert OUTER not in listed()


@pytest.mark.usefixtures("enforced")
@pytest.mark.parametrize(("mine", "theirs"), [(OUTER, INNER), (INNER, OUTER)])
def test_o14_administrators_alone_learn_the_foreign_owner(mine: str, theirs: str) -> None:
    for space in (NS, BETA):
        assert PLATFORM.status("PUT", f"{space}/allowed", {"buckets": [f"s3://{ports().settings.lake_bucket}/"]}) == 201
    assert BOB.status("PUT", f"{BETA}/datasets/secret", dataset(theirs)) == 201
    error = ANA.error("PUT", f"{NS}/datasets/orders", dataset(mine))
    assert (error["code"], error["field"]) == ("conflict", "prefix")
    assert "secret" not in str(error) and "beta" not in str(error) and "(hidden)" in error["message"]
    assert f"sluice prefixes give demo s3://{ports().settings.lake_bucket}/{mine} --nested" in error["hint"]
    plain = ANA.error("PUT", f"{NS}/apps/more?dry_run=true", {"datasets": {"orders": dataset(mine)}})
    assert plain["message"] == error["message"]
    shown = PLATFORM.error("PUT", f"{NS}/prefixes", given(mine))
    assert f"dataset beta.secret ({theirs})" in shown["message"]
    assert PLATFORM.status("PUT", f"{NS}/prefixes", given(mine, nested=True)) == 201
    assert ANA.status("PUT", f"{NS}/datasets/orders", dataset(mine)) == 201
    assert listed() | {mine: "demo", theirs: "beta"} == listed()


@pytest.mark.usefixtures("enforced")
def test_o14_the_owner_of_a_given_prefix_is_hidden_too() -> None:
    assert PLATFORM.status("PUT", f"{BETA}/prefixes", given(OUTER)) == 201
    assert PLATFORM.status("PUT", f"{NS}/allowed", {"buckets": [f"s3://{ports().settings.lake_bucket}/"]}) == 201
    for prefix in (OUTER, INNER):
        error = ANA.error("PUT", f"{NS}/datasets/orders", dataset(prefix))
        assert error["code"] == "conflict" and "beta" not in str(error) and "(hidden)" in error["message"]


@pytest.mark.usefixtures("enforced")
def test_o14_an_author_is_told_where_its_datasets_may_be() -> None:
    error = ANA.error("PUT", f"{NS}/datasets/orders", dataset(OUTER))
    assert (error["code"], error["field"]) == ("invalid", "prefix")
    assert "a prefix in the folder demo/" in error["message"]
    assert "ask an administrator of the installation: sluice prefixes give demo s3://" in error["hint"]
    assert ANA.status("PUT", f"{NS}/datasets/orders", dataset("demo/orders/")) == 201
    assert ANA.status("PUT", f"{NS}/datasets/flights", {**dataset("raw/flights/"), "keys": ["year"]}) == 200
    assert ANA.status("PUT", f"{NS}/datasets/inside", dataset("raw/flights/more/")) == 201


@pytest.mark.usefixtures("enforced")
def test_o14_what_an_administrator_gives_and_takes_is_on_record() -> None:
    address = f"s3://{ports().settings.lake_bucket}/{OUTER}"
    PLATFORM.send("PUT", f"{BETA}/prefixes", given(OUTER))
    PLATFORM.send("DELETE", taken(OUTER))
    _, page = BOB.send("GET", f"{BETA}/audit?kind=prefix")
    seen = [(each["operation"], each["name"], each["before"], each["after"]) for each in page["items"]]
    assert sorted(seen, key=lambda each: str(each[0])) == [  # both may have the same millisecond
        ("give_prefix", "beta", None, {"prefix": address}),
        ("take_prefix", "beta", {"prefix": address}, None),
    ]


@pytest.mark.usefixtures("enforced")
def test_o14_bad_prefixes_are_refused_with_what_to_do() -> None:
    for body, code, field in (
        (given("raw/orders"), "invalid", "prefix"),
        (given("/raw/"), "invalid", "prefix"),
        (given(""), "invalid", "prefix"),
        ({"prefix": OUTER}, "invalid", "bucket"),
        ({"bucket": "elsewhere", "prefix": OUTER}, "invalid", "bucket"),
        (given("history/day=2026-03-01/"), "invalid", "prefix"),
        (given("raw/flights/"), "conflict", "prefix"),
    ):
        error = PLATFORM.error("PUT", f"{BETA}/prefixes", body)
        assert (error["code"], error["field"]) == (code, field), error
        assert error["hint"], error
    assert PLATFORM.error("GET", f"/v1/prefixes?bucket={'x' * 3000}")["field"] == "bucket"
    assert PLATFORM.error("DELETE", f"{BETA}/prefixes?bucket=lake")["field"] == "prefix"
    assert PLATFORM.error("DELETE", f"{BETA}/prefixes?bucket=lake&prefix=top")["field"] == "prefix"
    assert PLATFORM.error("PUT", "/v1/namespaces/none/prefixes", given(OUTER))["code"] == "not_found"


def test_o14_prefixes_are_listed_in_pages(enforced: Api) -> None:
    for number in range(5):
        PLATFORM.send("PUT", f"{BETA}/prefixes", given(f"landed/d{number}/"))
    seen: list[str] = []
    path: str | None = "/v1/prefixes?bucket=lake&limit=2"
    while path is not None:
        _, page = PLATFORM.send("GET", path)
        enforced.seen("GET", path, 200, page)
        seen += [item["prefix"] for item in page["items"]]
        cursor = page["next_cursor"]
        path = f"/v1/prefixes?bucket=lake&limit=2&cursor={cursor}" if cursor else None
    assert seen == sorted(seen) and len(seen) == len(set(seen)) and set(seen) >= {f"landed/d{n}/" for n in range(5)}
    assert PLATFORM.send("GET", "/v1/prefixes?bucket=no-such-bucket")[1]["items"] == []
