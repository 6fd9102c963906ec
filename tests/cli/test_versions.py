"""`versions`: the changes of each version of a schedule (L7); and the constraints of a job, each met or not (C14)."""

from __future__ import annotations

import json

import pytest

from sluice import wording
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import ARN, CLEAN, JOB, SCHEDULES, job_why, schedule_why, unmet, version

VERSIONS = f"{SCHEDULES}/clean/versions"
THREE = [version(3, "constraints.0.max: 1 -> 2", "tags.team: added 'a'"), version(2), version(1)]


def test_l7_versions_are_listed_with_what_they_changed(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[VERSIONS] = THREE
    lines = sluice("versions", CLEAN).stdout.splitlines()
    assert lines[0].split() == ["VERSION", "CREATED", "BY", "CHANGES"]
    assert lines[1].split(maxsplit=5) == ["3", "7", "h", "ago", ARN, "constraints.0.max: 1 -> 2"]
    assert lines[2].strip() == "tags.team: added 'a'"
    assert lines[3].split() == ["2", "8", "h", "ago", ARN, "-"]
    answer = json.loads(sluice("versions", "clean", "-n", "demo", "-a", "flights", "--json").stdout)
    assert answer == {"items": THREE, "next_cursor": None}


def test_l7_in_a_pipe_a_version_is_one_row_with_all_its_changes(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    api.lists[VERSIONS] = THREE
    lines = sluice("versions", CLEAN).stdout.splitlines()
    assert len(lines) == 4
    assert lines[1].endswith("constraints.0.max: 1 -> 2; tags.team: added 'a'")


def test_a_long_history_is_truncated_and_says_so(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[VERSIONS] = [version(number) for number in range(30, 0, -1)]
    some = sluice("versions", CLEAN)
    assert len(some.stdout.splitlines()) == 21
    assert "20 shown; sluice versions ... --limit 0 shows all" in some.stderr
    assert len(sluice("versions", CLEAN, "--limit", "0").stdout.splitlines()) == 31


def test_c14_why_job_shows_whether_each_constraint_is_met(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"/v1/jobs/{JOB}/why", job_why() | {"constraints": unmet()})
    page = sluice("why", "job", JOB).stdout
    lines = page.splitlines()
    first = lines.index("Constraints")
    assert lines[first + 1].split() == ["CONSTRAINT", "MET", "UNTIL", "WHY"]
    assert lines[first + 2] == "  time window     no   in 3 h  opens at 22:00 in Europe/Paris"
    assert lines[first + 3] == "  since last run  yes  -       4 h have passed since the last run started"


def test_c14_a_job_without_constraints_has_no_such_table(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"/v1/jobs/{JOB}/why", job_why() | {"constraints": []})
    assert "Constraints" not in sluice("why", "job", JOB).stdout


def test_c14_why_schedule_shows_the_constraints_of_each_job(api: PlayedApi, sluice: Sluice) -> None:
    jobs = [job_why() | {"constraints": unmet()}, job_why(f"{JOB}b") | {"constraints": unmet()}]
    api.play("GET", f"{SCHEDULES}/clean/why", {**schedule_why(), "jobs": jobs})
    assert sluice("why", "schedule", CLEAN).stdout.count("opens at 22:00 in Europe/Paris") == 2


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            {"type": "concurrency", "max": 2, "group": None, "on_unmet": "wait"},
            "at most 2 runs of the workflow at a time, else wait",
        ),
        (
            {"type": "concurrency", "max": 1, "group": "heavy", "on_unmet": "cancel_other"},
            "at most 1 run of group heavy at a time, else cancel other",
        ),
        (
            {"type": "time_window", "start": "22:00", "end": "06:00", "zone": None, "days": ["fri", "sat"]},
            "time window: start 22:00, end 06:00, days fri sat",
        ),
        (
            {"type": "since_last_run", "at_least": "4h", "of": "success", "on_unmet": "abort"},
            "since last run: at least 4h, of success, else abort",
        ),
        (
            {
                "type": "calendar",
                "only": ["mon", {"from": "2026-08-01", "to": "2026-08-14"}],
                "excluding": [],
                "zone": "UTC",
            },
            "calendar: only mon 2026-08-01 to 2026-08-14, zone UTC",
        ),
        (
            {"type": "calendar", "excluding": [f"12-{day}" for day in range(10, 24)], "on_unmet": "wait"},
            "calendar: excluding 12-10 12-11 12-12 12-13 12-14 12-15 12-16 12-17 12-18 and 5 more, else wait",
        ),
    ],
)
def test_a_constraint_of_any_type_is_described_in_words(rule: dict[str, object], words: str) -> None:
    assert wording.constraint(rule) == words
