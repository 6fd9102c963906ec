"""``sluice dead-letters``: failed deliveries, redriven or dropped (E6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.rows.run import DeadLetter
from chalicelib.flow.runs import dead_letters
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import past
from tests.support.reasons import says

LETTERS = "/v1/namespaces/demo/dead-letters"
RUN = "demo.flights.notify.m3k2j9x1.0123456789abcdef0123"


def letter(run_id: str = RUN) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "attempt": 1,
        "schedule": "demo.flights.notify",
        "workflow": "demo.flights.notify",
        "target": "http",
        "reason": "the callback answered with HTTP 404: no such hook",
        "code": "target_refused",
        "tries": 1,
        "nominal_at": past(minutes=6),
        "first_try_at": past(minutes=6),
        "failed_at": past(minutes=5),
        "size": 2,
    }


def test_recorded_letters_have_the_fields_of_the_service() -> None:
    real = dead_letters.view(DeadLetter("r", 1, "s", "w", "sqs", says("why"), 1, 0))
    assert set(letter()) == set(real)


def test_e6_the_command_lists_dead_letters_with_reasons(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", LETTERS, {"items": [letter()], "next_cursor": None})
    done = sluice("dead-letters", "list", "-n", "demo", "-s", "flights.notify")
    assert done.exit_code == 0
    header, row = done.stdout.splitlines()[:2]
    assert header.split()[:5] == ["EVENT", "TARGET", "TRIES", "GIVEN", "UP"]
    assert "HTTP 404" in done.stdout
    assert row.split()[:3] == [RUN, "http", "1"]
    assert [request.query for request in api.requests] == [{"schedule": "demo.flights.notify", "limit": "100"}]
    answer = json.loads(sluice("dead-letters", "list", "-n", "demo", "--json").stdout)
    assert answer["items"][0]["reason"] == letter()["reason"]


def test_e6_an_empty_list_of_dead_letters_says_so(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", LETTERS, {"items": [], "next_cursor": None})
    assert "no dead letters" in sluice("dead-letters", "list", "-n", "demo").stderr


def test_e6_a_truncated_list_says_how_to_see_the_rest(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", LETTERS, {"items": [letter()], "next_cursor": "more"})
    assert "--limit 0 shows all" in sluice("dead-letters", "list", "-n", "demo", "--limit", "1").stderr


def test_e6_a_dead_letter_is_redriven_by_its_id(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{LETTERS}/{RUN}/redrive", Played(503), {"run_id": RUN, "attempt": 2})
    done = sluice("dead-letters", "redrive", RUN)
    assert (done.exit_code, done.stdout) == (0, f"{RUN} is delivered again: attempt 2\n")
    assert len(api.requests) == 2, "a repeated request has no further effect"


def test_e6_a_redrive_of_a_schedule_is_not_repeated(api: PlayedApi, sluice: Sluice) -> None:
    """A repeat would deliver the next hundred."""
    api.play("POST", f"{LETTERS}/redrive", Played(503), {"redriven": ["a"], "refused": [], "more": False})
    done = sluice("dead-letters", "redrive", "-n", "demo", "-s", "flights.notify")
    assert done.exit_code != 0
    assert len(api.requests) == 1


def test_e6_all_of_a_schedule_are_redriven_or_shown_as_refused(api: PlayedApi, sluice: Sluice) -> None:
    answer = {"redriven": ["a", "b"], "refused": [{"run_id": "c", "why": "it was deleted"}], "more": True}
    api.play("POST", f"{LETTERS}/redrive", answer)
    done = sluice("dead-letters", "redrive", "-n", "demo", "-s", "flights.notify")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "2 delivered again",
        "c: it was deleted",
        "some remain: run the same command again",
    ]
    assert api.requests[0].body == {"schedule": "demo.flights.notify"}


def test_e6_a_dead_letter_is_dropped_by_its_id(api: PlayedApi, sluice: Sluice) -> None:
    api.play("DELETE", f"{LETTERS}/{RUN}", Played(204))
    assert sluice("dead-letters", "drop", RUN).stdout == f"{RUN} is dropped\n"
    assert json.loads(sluice("dead-letters", "drop", RUN, "--json").stdout) == {"run_id": RUN, "dropped": True}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("redrive",), "expected either the ID of an event or a schedule"),
        (("redrive", RUN, "-s", "flights.notify"), "expected either the ID of an event or a schedule"),
        (("redrive", "-s", "flights.notify"), "expected a schedule as namespace.app.schedule"),
        (("list",), "expected a namespace, got none"),
        (("drop", "nonsense"), "expected an id such as demo.flights.notify"),
    ],
)
def test_e6_an_incomplete_command_says_what_is_missing(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], said: str
) -> None:
    done = sluice("dead-letters", *args)
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert api.requests == []
