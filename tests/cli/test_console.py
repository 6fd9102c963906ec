"""`sluice console` and `sluice open`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.console import files, opening
from sluice.console.files import Page
from sluice.console.opening import Running
from sluice.console.server import Console, Settings
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES

RUN = f"{CLEAN}.m3k2j9x1.aaaa"


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html>")
    monkeypatch.setattr(Page.__init__, "__defaults__", (folder,))
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that the browser was started with, as text."""
    texts: list[str] = []

    def show(path: Path) -> bool:
        texts.append(path.read_text())
        return True

    monkeypatch.setattr(opening, "open_browser", show)
    return texts


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user presses ctrl-c at once."""

    def stop(server: Console, poll_interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Console, "serve_forever", stop)


@pytest.fixture
def console(api: PlayedApi, built: Path) -> Iterator[Running]:
    """A console that runs."""
    server = Console(0, "the-token", Settings(api.url, None, False), Page(built))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    running = Running(server.access.port, "the-token")
    opening.write_start_file(running)
    yield running
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.usefixtures("stopped")
def test_the_console_opens_the_browser_and_ends(api: PlayedApi, sluice: Sluice, opened: list[str]) -> None:
    result = sluice("console", "--port", "8491")
    assert result.exit_code == 0
    assert "http://127.0.0.1:8491/" in result.output
    assert "token" not in result.stdout
    assert "http://127.0.0.1:8491/#token=" in opened[0]
    assert not opening.start_file(8491).exists()


@pytest.mark.usefixtures("stopped")
def test_without_a_browser_the_address_is_printed(api: PlayedApi, sluice: Sluice, opened: list[str]) -> None:
    result = sluice("console", "--port", "8492", "--no-open")
    assert "http://127.0.0.1:8492/#token=" in result.stdout
    assert opened == []


def test_the_console_has_the_namespace_and_forwards_only_reads(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Settings] = []

    def stop(server: Console, poll_interval: float) -> None:
        served.append(server.settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(Console, "serve_forever", stop)
    api.play("GET", "/v1/namespaces/demo/datasets/flights", {"name": "flights"})
    sluice("console", "-n", "demo", "--port", "8494", "--read-only", "--no-open")
    sluice("open", "demo.flights", "-n", "demo", "--port", "8494", "--no-open")
    sluice("console", "--port", "8494", "--no-open")
    assert [(each.namespace, each.read_only) for each in served] == [("demo", True), ("demo", False), (None, False)]


def test_a_console_that_is_not_built_says_what_to_run(api: PlayedApi, sluice: Sluice, built: Path) -> None:
    (built / "index.html").unlink()
    result = sluice("console")
    assert result.exit_code == 2
    assert "make console" in result.output


def test_a_port_in_use_is_named(api: PlayedApi, sluice: Sluice) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = sluice("console", "--port", port)
    assert result.exit_code == 2
    assert f"expected a free port, got {port}" in result.output


def test_the_build_belongs_to_the_package() -> None:
    assert Path(files.__file__).parent / "static" == files.BUILT


def test_open_uses_the_console_that_runs(api: PlayedApi, sluice: Sluice, console: Running, opened: list[str]) -> None:
    api.play("GET", f"{SCHEDULES}/clean", {"name": "clean"})
    result = sluice("open", CLEAN, "--port", str(console.port))
    assert result.exit_code == 0
    assert f"http://127.0.0.1:{console.port}/schedules/{CLEAN}#token=the-token" in opened[0]


def test_open_finds_a_run_by_its_id(api: PlayedApi, sluice: Sluice, console: Running, opened: list[str]) -> None:
    api.play("GET", f"/v1/runs/{RUN}", {"run_id": RUN})
    sluice("open", RUN, "--port", str(console.port))
    assert f"/runs/{RUN}#token=" in opened[0]


@pytest.mark.parametrize(
    ("words", "found", "view"),
    [
        ("flights.clean -n demo", "apps/flights/schedules/clean", "/schedules/demo.flights.clean"),
        ("clean -n demo -a flights", "apps/flights/schedules/clean", "/schedules/demo.flights.clean"),
        ("clean -a demo.flights", "apps/flights/schedules/clean", "/schedules/demo.flights.clean"),
        ("flights -n demo", "datasets/flights", "/datasets/demo.flights"),
        ("demo.flights -n demo", "datasets/flights", "/datasets/demo.flights"),
        ("demo.flights.daily -n other", "apps/flights/dags/daily", "/dags/demo.flights.daily"),
        ("demo -n other", "", "/namespaces/demo"),
        ("demo -n demo", "", "/namespaces/demo"),
    ],
)
def test_a_running_console_opens_what_a_short_name_means(
    api: PlayedApi, sluice: Sluice, console: Running, opened: list[str], words: str, found: str, view: str
) -> None:
    """The console that runs was started without a namespace: the page's path names it."""
    api.play("GET", f"/v1/namespaces/demo/{found}".rstrip("/"), {"name": view.rpartition("/")[2]})
    result = sluice("open", *words.split(), "--port", str(console.port))
    assert result.exit_code == 0, result.output
    assert f"http://127.0.0.1:{console.port}{view}#token=the-token" in opened[0]


def test_a_running_console_opens_the_node_of_a_dag(
    api: PlayedApi, sluice: Sluice, console: Running, opened: list[str]
) -> None:
    graph = f"{CLEAN.rpartition('.')[0]}.daily~0a1b2c3d"
    api.play("GET", f"{SCHEDULES}/daily~", {"name": "demo.flights.daily~", "workflow": graph})
    api.play("GET", f"{SCHEDULES}/daily~0a1b2c3d~load", {"name": f"{graph}~load"})
    sluice("open", "daily/load", "-n", "demo", "-a", "flights", "--port", str(console.port))
    assert f"/schedules/{graph}~load#token=" in opened[0]


@pytest.mark.usefixtures("stopped")
def test_open_starts_a_console_where_none_runs(api: PlayedApi, sluice: Sluice, opened: list[str]) -> None:
    api.play("GET", "/v1/namespaces/demo/datasets/flights", {"name": "flights"})
    result = sluice("open", "demo.flights", "--port", "8493")
    assert result.exit_code == 0
    assert "/datasets/demo.flights#token=" in opened[0]


def test_open_names_what_it_does_not_find(api: PlayedApi, sluice: Sluice) -> None:
    result = sluice("open", "demo.flights.none")
    assert result.exit_code == 2
    assert "'demo.flights.none'" in result.output
    assert "sluice get" in result.output
