"""Answers stay below the limit of Lambda: pages of large documents are shorter (H2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.ports import Page
from chalicelib.web.http import MAX_ANSWER, answer, escaped_size, written
from chalicelib.web.paging import listing

LAMBDA = 6_291_556  # bytes of a response


def request(**parameters: str) -> Any:
    return SimpleNamespace(path="/v1/x", uri_params={}, query_params=parameters)


def pages(items: Sequence[str], limit: int) -> list[dict[str, Any]]:
    """All pages of a list of texts, as a client reads them."""
    found: list[dict[str, Any]] = []

    def read(most: int, cursor: str | None) -> Page[str]:
        begin = int(cursor or "0")
        end = begin + most
        return Page(tuple(items[begin:end]), str(end) if end < len(items) else None)

    cursor: dict[str, str] = {}
    while not found or cursor:
        found.append(listing(request(limit=str(limit), **cursor), read, lambda item: {"text": item}))
        following = found[-1]["next_cursor"]
        cursor = {"cursor": following} if following else {}
    return found


@pytest.mark.parametrize("character", ["x", '"', "\\", "\u00e9"])
def test_a_list_of_large_documents_pages_by_bytes(character: str) -> None:
    items = [f"{number}{character * 90_000}" for number in range(60)]
    found = pages(items, 500)
    assert [item["text"] for page in found for item in page["items"]] == items
    assert all(page["items"] for page in found)
    for page in found:
        sent = written(answer(page))
        assert sent.status_code == 200
        assert len(json.dumps({"statusCode": 200, "headers": sent.headers, "body": sent.body})) < LAMBDA
    assert len(found) > 1 or character == "x"


def test_a_list_of_small_documents_is_one_page() -> None:
    assert [len(page["items"]) for page in pages(["x" * 1_000] * 500, 500)] == [500]


def test_the_size_of_an_escaped_text_is_exact() -> None:
    text = json.dumps({"a": 'x"\\\n\u00e9'})
    assert escaped_size(text) == len(json.dumps(text)) - 2


def test_an_answer_above_the_limit_is_an_error_that_says_so() -> None:
    refused = written(answer({"text": '"' * (MAX_ANSWER // 3)}))
    assert refused.status_code == 413
    error = json.loads(refused.body)["error"]
    assert error["code"] == "too_large"
    assert "a smaller limit" in error["hint"]
    assert written(answer({"text": "x" * (MAX_ANSWER - 100)})).status_code == 200
