"""Texts of a target's document with values of the run context (W22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.targets import templates

CONTEXT: dict[str, Any] = {
    "run_id": "a-1",
    "attempt": 2,
    "correlation": {"day": "2026-03-01", "at": "07:00"},
    "events": [{"partition": {"day": "1"}}, {"partition": {"day": "2"}}],
    "properties": {"depth": 3, "days": [1, 2], "flag": False},
    "upstream": None,
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{run_id}}", "a-1"),
        ("{{ attempt }}", 2),
        ("{{properties.days}}", [1, 2]),
        ("{{properties.flag}}", False),
        ("day {{correlation.day}} at {{correlation.at}}", "day 2026-03-01 at 07:00"),
        ("{{events.1.partition.day}}{{events.0.partition.day}}", "21"),
        ("days={{properties.days}}", "days=[1, 2]"),
        ({"{{run_id}}": ["{{attempt}}", 7, None]}, {"{{run_id}}": [2, 7, None]}),
        ('a { brace }, {"a": {"b": 1}}', 'a { brace }, {"a": {"b": 1}}'),
    ],
)
def test_w22_placeholders_become_values(template: Any, expected: Any) -> None:
    templates.check(template, "input")
    assert templates.fill(template, CONTEXT, "input") == expected


@pytest.mark.parametrize("path", ["correlation.hour", "events.2.id", "events.x", "upstream", "upstream.run_id", "dag"])
def test_w22_a_value_that_the_context_lacks_is_named(path: str) -> None:
    with pytest.raises(SluiceError) as refused:
        templates.fill({"Text": ["at {{" + path + "}}"]}, CONTEXT, "input")
    assert refused.value.field == "input.Text.0"
    assert path in refused.value.message


@pytest.mark.parametrize("text", ["{{", "{{a", "{{day}}", "{{}}", "{{a b}}", "{{correlation.}}", "{{correlation day}}"])
def test_w22_a_wrong_placeholder_is_refused(text: str) -> None:
    with pytest.raises(SluiceError) as refused:
        templates.check([text], "input")
    assert refused.value.field == "input.0"


def test_w22_a_value_is_not_filled_again() -> None:
    context = {"properties": {"text": "{{run_id}}"}, "run_id": "a-1"}
    assert templates.fill("<{{properties.text}}>", context, "input") == "<{{run_id}}>"
