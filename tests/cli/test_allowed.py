"""`sluice allowed`: the allow-list of a namespace (O10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice import documents
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PATH = "/v1/namespaces/demo/allowed"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:team-a-*"
OTHER = "arn:aws:sqs:eu-west-1:123456789012:team-b-*"
ROLE = "arn:aws:iam::123456789012:role/sluice-target-demo"
VIEW = {"name": "demo", "kind": "allowed", "version": 4, "queues": [QUEUE, OTHER], "topics": []}
CHANGE = {"name": "demo", "kind": "allowed", "did": "replaced", "version": 5}


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    file = tmp_path / "allowed.yaml"
    file.write_text(f"queues: ['{QUEUE}']\n")
    return file


def test_an_allow_list_is_shown_kind_by_kind(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("allowed", "demo")
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert ["queues", QUEUE] in lines
    assert ["topics", "none"] in lines


def test_a_file_replaces_the_list_that_was_shown(api: PlayedApi, sluice: Sluice, lists: Path) -> None:
    api.play("GET", PATH, VIEW)
    api.play("PUT", PATH, CHANGE)
    result = sluice("allowed", "demo", "--file", str(lists), "--yes")
    assert result.exit_code == 0, result.output
    [request] = api.sent("PUT", PATH)
    assert request.body == {"queues": [QUEUE]}
    assert request.headers["if-match"] == '"4"'


def test_what_is_no_longer_allowed_is_named_before(api: PlayedApi, sluice: Sluice, lists: Path) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("allowed", "demo", "--file", str(lists), input="n\n")
    assert result.exit_code == 1
    assert f"demo may no longer use {OTHER}" in " ".join(result.output.split())
    assert api.sent("PUT", PATH) == []


def test_the_first_list_asks_because_it_limits(api: PlayedApi, sluice: Sluice, lists: Path) -> None:
    api.refuse("GET", PATH, 404, "not_found", "no allow-list of namespace named 'demo'")
    api.play("PUT", PATH, CHANGE | {"did": "created", "version": 1})
    result = sluice("allowed", "demo", "--file", str(lists), input="y\n")
    assert "any other queues" in " ".join(result.output.split())
    assert "if-match" not in api.sent("PUT", PATH)[0].headers


def test_an_answer_is_printed_as_json_on_request(api: PlayedApi, sluice: Sluice, lists: Path) -> None:
    api.play("GET", PATH, VIEW)
    api.play("PUT", PATH, CHANGE)
    result = sluice("allowed", "demo", "--file", str(lists), "--json", "--yes")
    assert json.loads(result.stdout)["did"] == "replaced"


def test_a_target_role_is_shown_in_one_line(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, VIEW | {"target_role": ROLE})
    lines = [line.split() for line in sluice("allowed", "demo").output.splitlines()]
    assert ["target_role", ROLE] in lines


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (None, ROLE, f"call the targets of demo with the role {ROLE}. Go on?"),
        (ROLE, None, "call the targets of demo with the roles of the Lambdas. Go on?"),
    ],
)
def test_a_change_of_the_target_role_asks_before(
    api: PlayedApi, sluice: Sluice, tmp_path: Path, before: str | None, after: str | None, words: str
) -> None:
    file = tmp_path / "allowed.json"
    file.write_text(json.dumps({"target_role": after}))
    api.play("GET", PATH, {"name": "demo", "kind": "allowed", "version": 4, "target_role": before})
    result = sluice("allowed", "demo", "--file", str(file), input="n\n")
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert api.sent("PUT", PATH) == []


PROPOSAL = {
    "name": "demo",
    "refused": [{"document": "workflow demo.a.w", "field": "target.url", "why": "expected a host, got 'x'"}] * 2,
    "allowed": {"queues": [QUEUE], "hosts": ["*.x.example.com"], "topics": [], "target_role": "arn:aws:iam::1:role/x"},
    "left_out": [{"document": "workflow demo.a.v", "field": "target.spark.spark.jars", "why": "expected a file"}],
    "complete": False,
}


def test_o14_a_proposal_is_a_file_for_the_same_command(api: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    api.play("GET", f"{PATH}/proposal", PROPOSAL)
    result = sluice("allowed", "demo", "--propose")
    assert result.exit_code == 0
    written = tmp_path / "proposed.yaml"
    written.write_text(result.stdout)
    assert documents.load_plain(str(written)) == PROPOSAL["allowed"]
    noted = " ".join(result.stderr.split())
    assert "2 uses would be refused without it beside another namespace" in noted
    assert "not covered: target.spark.spark.jars of workflow demo.a.v: expected a file" in noted
    assert "more documents than were read" in noted


def test_o14_a_proposal_is_also_json(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{PATH}/proposal", PROPOSAL)
    assert json.loads(sluice("allowed", "demo", "--propose", "--json").stdout) == PROPOSAL


def test_o14_a_proposal_replaces_nothing(api: PlayedApi, sluice: Sluice, lists: Path) -> None:
    result = sluice("allowed", "demo", "--propose", "--file", str(lists))
    assert result.exit_code == 2
    assert "expected --propose or --file" in result.output
    assert api.sent("PUT", PATH) == []
