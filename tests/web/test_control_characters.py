"""Texts that people read have no control characters: a terminal would execute them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.workflow import Namespace, Workflow
from chalicelib.core.documents import SENT
from tests.web.conftest import APP, NS, Api
from tests.web.wrong import ONE, refused, schedule

ESCAPE, C1, REVERSED = "\x1b]0;x\x07", "a\x9b2J", "a\u202eb"
HIDDEN = ["a\u2028b", "a\u2029b", "pay\u200bpal", "a\u2060b", "a\ufeffb", "ok\U000e0041"]


@pytest.mark.parametrize("text", [ESCAPE, C1, REVERSED, "a\x00", "a\rb", "a\x7f", *HIDDEN])
@pytest.mark.parametrize(
    ("path", "field"), [(NS, "description"), (NS, "owner"), (APP, "description"), (ONE, "description"), (ONE, "owner")]
)
def test_a_text_with_control_characters_is_refused(standing: Api, path: str, field: str, text: str) -> None:
    body = schedule() if path == ONE else {}
    error = refused(standing, 400, "PUT", path, {**body, field: text})
    assert (error["code"], error["field"]) == ("invalid", field)
    assert "without control characters, got 'U+" in error["message"]
    assert not any(sign in error["message"] for sign in text if not sign.isprintable())


@pytest.mark.parametrize("tags", [{"team": ESCAPE}, {ESCAPE: "a"}, {"team": "a\nb"}])
def test_a_tag_is_one_line_without_control_characters(standing: Api, tags: dict[str, str]) -> None:
    error = refused(standing, 400, "PUT", NS, {"tags": tags})
    assert "one line of text without control characters" in error["message"]
    assert "\x1b" not in str(error)


def test_a_description_may_have_lines_an_owner_may_not(standing: Api) -> None:
    description = "a\n\tb \u200f größer \u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f4bb"
    assert Namespace.model_validate({"description": description}, context=SENT).description == description
    assert refused(standing, 400, "PUT", NS, {"owner": "a\nb"})["field"] == "owner"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", f"{NS}/events", {"events": [{"type": "t", "id": ESCAPE}]}, "events.0.id"),
        ("PUT", f"{NS}/datasets/d", {"bucket": "lake", "prefix": f"raw/{ESCAPE}/"}, "prefix"),
        (
            "PUT",
            f"{NS}/datasets/d",
            {"bucket": "lake", "prefix": "raw/d/", "ready": {"done_flag": C1}},
            "ready.done_flag",
        ),
    ],
)
def test_ids_and_names_of_files_have_none(standing: Api, method: str, path: str, body: Any, field: str) -> None:
    assert refused(standing, 400, method, path, body)["field"] == field


def test_a_stored_document_keeps_what_was_accepted() -> None:
    document = {"target": {"type": "worker", "pool": "p"}, "description": ESCAPE, "tags": {ESCAPE: ESCAPE}}
    assert Workflow.model_validate(document).description == ESCAPE
    with pytest.raises(ValidationError):
        Workflow.model_validate(document, context=SENT)
