"""The commands that the console shows beside its buttons are commands of the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from sluice.cli import app

LISTED = json.loads((Path(__file__).parents[2] / "console" / "tests" / "commands.json").read_text(encoding="utf-8"))


def parse(words: list[str]) -> None:
    """Parse the words as the command that they name. Raises a usage error if it does not take them."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("sluice", words)
    while hasattr(command, "resolve_command"):
        given = [*context._protected_args, *context.args]
        if not given and command.invoke_without_command:
            return
        name, command, rest = command.resolve_command(context, given)
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("shown", LISTED.values(), ids=LISTED.keys())
def test_a_command_of_the_console_is_one_of_the_cli(shown: str) -> None:
    program, *words = shlex.split(shown)
    assert program == "sluice"
    parse(words)


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option: --stop-timeouted"):
        parse(shlex.split("pause demo.flights.clean --stop-timeouted"))
