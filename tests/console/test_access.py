"""Whose requests the proxy of the console accepts."""

from __future__ import annotations

import pytest

from sluice.console.access import HEADER, Access, new_token

ACCESS = Access(8484, "the-token")
OWN = {HEADER.lower(): "the-token"}


@pytest.mark.parametrize("host", ["127.0.0.1:8484", "localhost:8484", "LocalHost:8484"])
def test_the_proxy_answers_under_its_own_addresses(host: str) -> None:
    assert ACCESS.refused_host([host]) is None


@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.example:8484"],
        ["127.0.0.1"],
        ["127.0.0.1:8485"],
        ["localhost.evil.example:8484"],
        ["127.0.0.1:8484", "evil.example"],
        [],
    ],
)
def test_another_host_is_misdirected(hosts: list[str]) -> None:
    refused = ACCESS.refused_host(hosts)
    assert refused is not None
    assert (refused.status, refused.code) == (421, "wrong_host")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://127.0.0.1:8484"},
        {"origin": "http://localhost:8484", "sec-fetch-site": "same-origin"},
    ],
)
def test_the_own_page_with_the_token_is_accepted(headers: dict[str, str]) -> None:
    assert ACCESS.refused_call({**OWN, **headers}) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "https://127.0.0.1:8484"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_a_foreign_page_is_refused_even_with_the_token(headers: dict[str, str]) -> None:
    refused = ACCESS.refused_call({**OWN, **headers})
    assert refused is not None
    assert (refused.status, refused.code) == (403, "foreign_page")


@pytest.mark.parametrize("token", ["", "the-toke", "the-token ", "das-Tökén"])
def test_a_call_without_the_token_says_what_to_run(token: str) -> None:
    refused = ACCESS.refused_call({HEADER.lower(): token})
    assert refused is not None
    assert (refused.status, refused.code) == (401, "stale_token")
    assert "sluice console" in refused.hint


def test_each_start_has_another_token() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 43 for token in tokens)
