"""The stand-in of the page's tests answers as the API does: its answers have the forms of the OpenAPI document."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.console.test_page import NODE, ROOT
from tests.web.answer_schemas import check, operation


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    command = [str(NODE / "node"), "stub/dump.ts"]
    environment = {**os.environ, "STUB_SCHEDULES": "400", "STUB_RUNS": "2000", "STUB_JOBS": "200"}
    done = subprocess.run(command, cwd=ROOT / "console", env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return list(json.loads(done.stdout))


def test_each_answer_of_the_stub_has_the_form_of_the_api(answers: list[dict[str, Any]]) -> None:
    faults = []
    for one in answers:
        assert operation(one["method"], one["path"]) is not None, f"the API has no {one['method']} {one['path']}"
        assert one["status"] < 300, f"{one['method']} {one['path']}: {one['status']}"
        try:
            check(**one)
        except AssertionError as fault:
            faults.append(str(fault))
    assert not faults, "\n".join(faults)
