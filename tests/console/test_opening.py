"""How the browser gets the token of the console."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sluice.console import opening
from sluice.console.opening import Running

CONSOLE = Running(8484, "the-token")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_only_the_user_reads_the_file_with_the_token() -> None:
    path = opening.write_start_file(CONSOLE, "/runs/a.b.c.1.d")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "http://127.0.0.1:8484/runs/a.b.c.1.d#token=the-token" in path.read_text()


def test_a_file_of_others_is_replaced_and_never_written_to(tmp_path: Path) -> None:
    elsewhere = tmp_path / "readable-by-all"
    elsewhere.write_text("")
    opening.folder().mkdir()
    opening.start_file(8484).symlink_to(elsewhere)
    path = opening.write_start_file(CONSOLE)
    assert not path.is_symlink()
    assert elsewhere.read_text() == ""


def test_the_browser_is_started_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: given.append(address) or True)
    assert opening.open_browser(opening.write_start_file(CONSOLE))
    assert given == [opening.start_file(8484).as_uri()]
    assert "the-token" not in given[0]


def test_the_end_of_a_console_removes_only_its_own_file() -> None:
    opening.write_start_file(CONSOLE)
    opening.remove_start_file(Running(8484, "of-another"))
    assert opening.start_file(8484).exists()
    opening.remove_start_file(CONSOLE)
    assert not opening.start_file(8484).exists()


def test_a_name_in_an_address_stays_one_segment() -> None:
    assert opening.view_of("schedules", "demo.flights.daily~clean") == "/schedules/demo.flights.daily~clean"
    assert opening.view_of("runs", "a/b?c#d") == "/runs/a%2Fb%3Fc%23d"


def test_without_a_file_no_console_runs() -> None:
    assert opening.running_console(8484, "http://api") is None
