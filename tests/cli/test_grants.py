"""`sluice grants`: what a namespace lets the documents of other namespaces use (O9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chalicelib.core.access.grants import MEANING
from sluice.cli.grants import KINDS
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PATH = "/v1/namespaces/lake/grants"
TO_DEMO = {"to": "demo", "run": ["core.clean"], "events": ["sales.*"]}
TO_SHOP = {"to": "shop", "pools": ["spark"]}
VIEW = {"name": "lake", "kind": "grants", "version": 4, "grants": [TO_DEMO, TO_SHOP]}
CHANGE = {"name": "lake", "kind": "grants", "did": "replaced", "version": 5}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "grants.yaml"
    file.write_text("grants:\n  - to: demo\n    run: [core.clean]\n    events: ['sales.*']\n")
    return file


def test_grants_are_shown_by_namespace_and_use(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("grants", "lake")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[-3:] == ["demo run core.clean", "demo receive event sales.*", "shop use pool spark"]


def test_what_is_taken_back_is_named_before(api: PlayedApi, sluice: Sluice, file: Path) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("grants", "lake", "--file", str(file), input="n\n")
    assert result.exit_code == 1
    assert "lake will no longer allow shop to use pool spark. What uses it will wait." in " ".join(
        result.output.split()
    )
    assert api.sent("PUT", PATH) == []


def test_a_file_replaces_the_grants_that_were_shown(api: PlayedApi, sluice: Sluice, file: Path) -> None:
    api.play("GET", PATH, VIEW)
    api.play("PUT", PATH, CHANGE)
    assert sluice("grants", "lake", "--file", str(file), "--yes").exit_code == 0
    [request] = api.sent("PUT", PATH)
    assert request.body == {"grants": [TO_DEMO]}
    assert request.headers["if-match"] == '"4"'


def test_the_first_grants_need_no_question(api: PlayedApi, sluice: Sluice, file: Path) -> None:
    api.refuse("GET", PATH, 404, "not_found", "no grants document of namespace named 'lake'")
    api.play("PUT", PATH, CHANGE | {"did": "created", "version": 1})
    result = sluice("grants", "lake", "--file", str(file), "--json")
    assert json.loads(result.stdout)["did"] == "created"
    assert "if-match" not in api.sent("PUT", PATH)[0].headers


def test_the_client_names_uses_as_the_service_does() -> None:
    assert list(MEANING.items()) == list(KINDS.items())
