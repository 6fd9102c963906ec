"""The function of the page on alerts writes a notice, as Sluice sends it to a function, to a webhook."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "get-alerts.md").read_text()


def test_the_function_of_the_page_tells_slack_of_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^<!-- file: slack.py -->\n```python\n(.*?)^```$", PAGE, flags=re.S | re.M)
    (notice, *_) = re.findall(r"^<!-- delivered: body -->\n```json\n(.*?)^```$", PAGE, flags=re.S | re.M)
    names: dict[str, Any] = {}
    exec(compile(code, "slack.py", "exec"), names)
    sent: list[Any] = []
    monkeypatch.setitem(names, "urlopen", sent.append)
    monkeypatch.setenv("SLACK_WEBHOOK", "https://hooks.slack.example/1")

    names["handler"]({"sluice": {}, "data": json.loads(notice)}, None)
    [request] = sent
    assert request.full_url == "https://hooks.slack.example/1"
    text = json.loads(request.data)["text"]
    assert text == "shop.orders.revenue: 1 x failed, exit code 1: no price for tea"
