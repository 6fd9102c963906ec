"""W18, W19: a wrong result of a node is said with what to do, and the run goes on once the program is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wrong_inputs.pages import Example
from tests.wrong_inputs.played import DAG, examples, played


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.id)
def test_w18_a_wrong_result_is_said_and_nothing_is_lost(example: Example, tmp_path: Path) -> None:
    with played(example) as play:
        assert play.printed(tmp_path) == example.console
        play.all_end()
        before = play.state()
        assert {before["nodes"][name]["state"] for name in ("scan", "log")} == {"SUCCEEDED"}
        assert before["state"] == ("SUCCEEDED" if "SKIPPED" in example.console else "FAILED")
        play.api.post(f"{DAG}/runs/{play.run_id}/rerun", {"from": "scan"}, idempotency_key="2")
        play.api.work()
        play.hands_on(play.result("good.py"))
        play.all_end()
        after = play.state()
        assert after["state"] == "SUCCEEDED"
        assert {node["state"] for node in after["nodes"].values()} == {"SUCCEEDED"}
