"""`apply` on a terminal: it shows the changes, field by field, and prompts before it makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import namespace
from tests.cli.terminal import on_a_terminal, plain
from tests.cli.test_plan import APP, NS, PLAN

CHANGES = {"workflow demo.flights.clean_flights": ["priority: 5 -> 7", "tags.team: added 'a'"]}
KEPT = {**PLAN, "created": [], "replaced": [], "deleted": []}


@pytest.fixture
def file(tmp_path: Path, api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    api.play("GET", NS, namespace())
    api.play("PUT", APP, {**PLAN, "changes": CHANGES}, PLAN)
    path = tmp_path / "app.yaml"
    path.write_text("namespace: demo\napp: flights\n")
    return str(path)


def queries(api: PlayedApi) -> list[dict[str, str]]:
    return [request.query for request in api.sent("PUT", APP)]


def test_apply_shows_a_coloured_diff_and_asks(api: PlayedApi, file: str) -> None:
    code, output = on_a_terminal("apply", file, answer="no\n")
    assert (code, queries(api)) == (1, [{"dry_run": "true"}])
    assert "priority: \x1b[31m5\x1b[0m -> \x1b[32m7\x1b[0m" in output
    assert "tags.team: \x1b[32madded 'a'\x1b[0m" in output
    assert "change demo.flights, and delete 2?" in output
    assert "nothing was changed" in output


def test_apply_says_what_becomes_of_a_trigger(api: PlayedApi, file: str) -> None:
    name = "schedule demo.flights.clean"
    plan = {**KEPT, "replaced": [name], "changes": {name: ["priority: 5 -> 7"]}}
    api.play("PUT", APP, {**plan, "effects": {name: {"code": "goes_on", "text": "times and spans go on"}}})
    _, output = on_a_terminal("apply", file, "--dry-run")
    assert "times and spans go on" in output


def test_apply_deploys_once_the_answer_is_yes(api: PlayedApi, file: str) -> None:
    code, output = on_a_terminal("apply", file, answer="y\n")
    assert (code, queries(api)) == (0, [{"dry_run": "true"}, {}])
    assert output.count("demo.flights: 1 ") == 2


@pytest.mark.parametrize("option", ["--yes", "--json", "--dry-run"])
def test_apply_with_an_answer_in_advance_asks_nothing(api: PlayedApi, file: str, option: str) -> None:
    code, output = on_a_terminal("apply", file, option)
    assert (code, len(queries(api))) == (0, 1)
    assert "[y/N]" not in output


def test_apply_draws_a_bar_while_it_deploys(api: PlayedApi, file: str) -> None:
    """It disappears with the answer, so that the report alone stays."""
    Path(file).write_text("namespace: demo\napp: flights\nschedules: {a: {}, b: {}}\n")
    code, output = on_a_terminal("apply", file, "--yes")
    assert code == 0
    assert "0/1 apps deploying demo.flights, 2 definitions" in plain(output)
    assert plain(output).rstrip().splitlines()[-1].startswith("demo.flights: 1 ")


def test_apply_of_a_large_app_writes_a_line_elsewhere(api: PlayedApi, sluice: Sluice, file: str) -> None:
    schedules = "".join(f"  s{number}: {{}}\n" for number in range(150))
    Path(file).write_text(f"namespace: demo\napp: flights\nschedules:\n{schedules}")
    done = sluice("apply", file)
    assert (done.exit_code, done.stderr) == (0, "deploying demo.flights, 150 definitions\n")


def test_apply_asks_nothing_when_nothing_changes(api: PlayedApi, file: str) -> None:
    api.play("PUT", APP, {**KEPT, "changes": {}}, KEPT)
    code, output = on_a_terminal("apply", file)
    assert (code, queries(api), "[y/N]" in output) == (0, [{"dry_run": "true"}, {}], False)


def test_apply_asks_before_it_creates_a_namespace(api: PlayedApi, file: str) -> None:
    api.refuse("GET", NS, 404, "not_found", "no namespace named 'demo'")
    code, output = on_a_terminal("apply", file, answer="n\n")
    assert (code, queries(api), api.sent("PUT", NS)) == (1, [{"dry_run": "true"}], [])
    assert "change demo.flights, and delete 2?" in output


def test_a_dry_run_in_a_pipe_lists_the_changes_of_a_part(api: PlayedApi, sluice: Sluice, file: str) -> None:
    done = sluice("apply", file, "--dry-run")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["CHANGE", "KIND", "NAME", "FIELDS"]
    [row] = [number for number, line in enumerate(lines) if line.startswith("replaced")]
    assert "priority: 5 -> 7" in lines[row] and "tags.team: added 'a'" in lines[row + 1]
    assert len(queries(api)) == 1


def test_l25_apply_names_what_it_would_drop_before_it_asks(api: PlayedApi, file: str) -> None:
    """The jobs, backfills and DAG runs of all schedules count; a part that loses nothing adds nothing."""
    lost = {
        "code": "begins_again",
        "text": "begins again; drops 2 jobs (day=1, day=2)",
        "dropped": 2,
        "backfills": ["b"],
    }
    gone = {"code": "deleted", "text": "is deleted; drops 1 job (day=3)", "dropped": 1, "dag_runs": ["r"], "more": True}
    none = {"code": "deleted", "text": "is deleted; drops nothing", "dropped": 0}
    parts = {f"schedule demo.flights.{name}": effect for name, effect in (("a", lost), ("b", gone), ("c", none))}
    first, *others = parts
    plan = {**KEPT, "replaced": [first], "deleted": others, "effects": parts, "changes": {first: ["priority: 5 -> 7"]}}
    api.play("PUT", APP, plan)
    code, output = on_a_terminal("apply", file, answer="no\n")
    asked = "change demo.flights, delete 2, drop at least 3 jobs, end at least 1 backfill, and end at least 1 DAG run?"
    assert (code, asked in " ".join(plain(output).split())) == (1, True)
    assert "\x1b[33mbegins again; drops 2 jobs (day=1, day=2)\x1b[0m" in output
    assert "drops nothing" not in output


def test_l25_apply_restarts_what_waits_if_asked(api: PlayedApi, sluice: Sluice, file: str) -> None:
    assert sluice("apply", file, "--restart").exit_code == 0
    assert queries(api) == [{"restart": "true"}]
