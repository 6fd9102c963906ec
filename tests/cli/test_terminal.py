"""What others write never steers the terminal of the operator: logs, tables, pages, errors, JSON and YAML."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sluice import render, visible, yaml12
from sluice.worker_command import Command
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import JOB

# Title, clipboard (OSC 52), erase and cursor, as escape sequences and as C1; and characters that reverse a text.
HOSTILE = (
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b[2J\x1b[1;1H",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\rSUCCEEDED",
    "\x08\x08",
    "\x7f",
    "\u202eexe.txt",
    "\u2066a\u2069",
    "\u200e1\u200f2\u061c",
    "a\u2028b\u2029",
    "pay\u200bpal\u2060\ufeff",
)
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def steers(printed: str) -> list[str]:
    """What would steer a terminal in an output, but for the colours of rich."""
    return _STEERING.findall(_STYLES.sub("", printed))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_control_characters_become_visible(hostile: str) -> None:
    shown = visible.visible(f"a{hostile}b\tc\n")
    assert steers(shown) == []
    assert len(shown) == len(hostile) + 5
    assert (shown[0], shown[-4:]) == ("a", "b\tc\n")
    assert visible.visible(shown) == shown


@pytest.mark.parametrize(
    "plain",
    ["", "a\tb\n", "größer ✓ 日本語", "שלום!", "e\u0301", "\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f4bb"],
)
def test_other_texts_stay(plain: str) -> None:
    assert visible.visible(plain) == plain
    assert json.loads(visible.as_json(plain)) == plain


def test_hidden_text_is_shown() -> None:
    assert visible.visible("ok\U000e0041\U000e007f") == "ok\ufffd\ufffd"


def test_c0_is_shown_by_its_picture() -> None:
    assert visible.visible("\x1b\x07\r\x7f\x9b") == "␛␇␍␡\ufffd"


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_that_a_console_prints_steers(hostile: str, is_terminal: bool) -> None:
    output = io.StringIO()
    console = render.Terminal(file=output, force_terminal=is_terminal, width=60, markup=False, highlight=False)
    table = Table(title=hostile, caption=hostile)
    table.add_column(hostile)
    table.add_row(Text(hostile, "red"))
    for each in (hostile, Text(hostile), table, Panel(hostile, title=hostile), Text.assemble("a", (hostile, "bold"))):
        console.print(each)
    console.print(hostile, soft_wrap=True, end="")
    render.table(console, ("A", "B…"), [(hostile, hostile)])
    render.fields(console, [(hostile, hostile), ("b", Text(hostile, "red"))])
    render.title(console, hostile, hostile, hostile)
    assert steers(output.getvalue()) == []


def test_columns_stay_in_line_beside_a_hostile_cell() -> None:
    output = io.StringIO()
    console = render.Terminal(file=output, width=60, markup=False, highlight=False)
    render.table(console, ("A", "B"), [("\x1b[31m", "x"), ("12345", "x")])
    assert [line.index("x") for line in output.getvalue().splitlines()[1:]] == [7, 7]


@pytest.mark.parametrize("columns", [("A", "B"), ("A", "B", "C…")])
def test_a_cell_forges_no_row(columns: tuple[str, ...]) -> None:
    output = io.StringIO()
    console = render.Terminal(file=output, width=60, markup=False, highlight=False)
    render.table(console, columns, [("x\nforged  enabled", Text("a\nb"), "c")[: len(columns)]])
    assert output.getvalue().splitlines()[1].split() == ["x␊forged", "enabled", "a␊b", *["c"] * (len(columns) == 3)]
    assert len(output.getvalue().splitlines()) == 2


@pytest.mark.parametrize("hostile", HOSTILE)
def test_logs_do_not_steer(api: PlayedApi, sluice: Sluice, hostile: str) -> None:
    page = {"run_id": JOB, "attempt": 1, "state": "FAILED", "streams": {"stdout": [f"a{hostile}b"]}, "why": hostile}
    api.play("GET", f"/v1/runs/{JOB}/logs", page)
    printed = sluice("logs", JOB)
    assert steers(printed.output) == []
    assert printed.stdout.startswith("a")
    assert printed.stdout.endswith("b\n")
    as_json = sluice("logs", JOB, "--json").stdout
    assert steers(as_json) == []
    assert json.loads(as_json)["streams"] == page["streams"]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_errors_of_the_api_do_not_steer(api: PlayedApi, sluice: Sluice, hostile: str, more: tuple[str, ...]) -> None:
    api.refuse("GET", f"/v1/runs/{JOB}/logs", 400, "invalid", f"got {hostile}", field=hostile, hint=hostile)
    printed = sluice("logs", JOB, *more)
    assert printed.exit_code != 0
    assert "got " in printed.stderr
    assert steers(printed.output) == []


@pytest.mark.parametrize("hostile", HOSTILE)
def test_yaml_holds_the_same_value_in_harmless_characters(hostile: str) -> None:
    value = {"description": f"a{hostile}", "tags": {hostile: hostile}, "plain": "b"}
    dumped = yaml12.dump(value)
    assert steers(dumped) == []
    assert yaml12.load(dumped) == value
    assert "plain: b\n" in dumped


def test_the_output_of_a_command_does_not_steer_its_worker(capsys: pytest.CaptureFixture[str]) -> None:
    lease = {"run_id": "r", "attempt": 1, "schedule": "s", "workflow": "w", "properties": {}, "arguments": [],
             "context": None}  # fmt: skip
    with Command([sys.executable, "-c", r"print('a\x1b]52;c;x\x07')"], lease, 1) as command:
        assert command.start() is None
        ended = command.wait(20)
    assert ended is not None
    assert ended.output == "a\x1b]52;c;x\x07\n", "what is reported is what was printed"
    assert capsys.readouterr().out == "a␛]52;c;x␇\n"
