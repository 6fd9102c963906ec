"""The grants document: which uses it covers, and which documents are refused (O9)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.access.grants import KINDS, MEANING, ForeignUse, Grant, Grants, parse_use, waiting_for
from chalicelib.core.errors import SluiceError, from_validation

RUN = ForeignUse("run", "lake.core.clean", "demo")


def grants(**what: Any) -> Grants:
    return Grants.model_validate({"grants": [{"to": "demo", **what}]})


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [
        ("core.clean", True),
        ("core.*", True),
        ("core.cl*", True),
        ("co*", True),
        ("*", True),
        ("core.cleaner", False),
        ("core.clea", False),
        ("other.*", False),
    ],
)
def test_a_name_is_exact_or_a_beginning_with_a_star(pattern: str, covered: bool) -> None:
    assert grants(run=[pattern]).allows(RUN) is covered


def test_a_grant_covers_one_namespace_and_one_kind_of_use() -> None:
    everything = grants(**{kind: ["*"] for kind in KINDS})
    assert all(everything.allows(ForeignUse(kind, "lake.x.y", "demo")) for kind in KINDS)
    for kind in KINDS:
        only = grants(**{kind: ["*"]})
        assert [other for other in KINDS if only.allows(ForeignUse(other, "lake.x.y", "demo"))] == [kind]
        assert not only.allows(ForeignUse(kind, "lake.x.y", "shop"))


def test_a_followed_schedule_is_covered_by_its_workflow_too() -> None:
    use = ForeignUse("follow", "lake.core.nightly", "demo", "lake.core.clean")
    assert grants(follow=["core.nightly"]).allows(use)
    assert grants(follow=["core.clean"]).allows(use)
    of_another = ForeignUse("follow", "lake.core.nightly", "demo", "shop.core.clean")
    assert not grants(follow=["core.clean"]).allows(of_another)


@pytest.mark.parametrize(
    ("grant", "field", "words"),
    [
        ({"to": "*", "run": ["*"]}, "grants.0.to", "the exact name of one namespace"),
        ({"to": "demo*", "run": ["*"]}, "grants.0.to", "no grant to everybody"),
        ({"to": "demo"}, "grants.0", "something that the namespace may use"),
        ({"to": "demo", "run": ["clean"]}, "grants.0.run.0", "app.name"),
        ({"to": "demo", "follow": ["a.b", "lake.core.clean"]}, "grants.0.follow.1", "app.name"),
        ({"to": "demo", "run": ["core.*.x"]}, "grants.0.run.0", "app.name"),
        ({"to": "demo", "pools": ["lake.spark"]}, "grants.0.pools.0", "without the namespace"),
        ({"to": "demo", "events": ["sales."]}, "grants.0.events.0", "sales.*"),
        ({"to": "demo", "datasets": [""]}, "grants.0.datasets.0", "without the namespace"),
    ],
)
def test_a_grant_that_fits_everybody_or_nothing_is_refused(grant: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Grants.model_validate({"grants": [grant]})
    [error] = from_validation(raised.value, Grants).each
    assert (error.field, words in f"{error.message} {error.hint}") == (field, True)
    assert error.hint


def test_a_grant_to_oneself_is_refused() -> None:
    with pytest.raises(SluiceError, match="expected another namespace, got 'demo'") as raised:
        grants(run=["*"]).check_owner("demo")
    assert raised.value.field == "grants.0.to"
    grants(run=["*"]).check_owner("lake")


def test_a_use_is_stored_as_one_text() -> None:
    assert parse_use(RUN.text) == RUN
    with pytest.raises(ValueError, match="expected one of run"):
        parse_use("walk lake.core.clean demo")


def test_the_reason_to_wait_names_the_use_and_the_next_command() -> None:
    pool = ForeignUse("pools", "shop.spark", "demo")
    assert waiting_for((RUN,)).text == (
        "waits for a grant of lake to run lake.core.clean (an administrator of lake can give it: sluice grants lake)"
    )
    commands = "administrator of lake and shop can give it: sluice grants lake and sluice grants shop)"
    assert waiting_for((RUN, pool)).text.endswith(commands)
    assert set(MEANING) == set(KINDS) == set(Grant.model_fields) - {"to"}
