"""Defects that are planted in the app, one at a time: the attackers find each, and name the rule that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.access import roles
from chalicelib.core.access.roles import Member
from chalicelib.core.errors import SluiceError, unknown_reference
from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import PutDefinition
from chalicelib.flow import grants, lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.runs import dead_letters
from chalicelib.web import access
from tests.attacker import cast
from tests.attacker.play import Found, play
from tests.attacker.stage import Stage, installed

MOST = 3_000  # requests until a planted defect must be found
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def stages() -> Iterator[list[Stage]]:
    with pytest.MonkeyPatch.context() as patch:
        installed(patch)
        yield [Stage(cast.CASTS[0])]


def _unchecked_route(patch: Patch) -> None:
    """One route lets everybody pass."""
    check = access.check

    def careless(request: Any, needs: Any, segments: Any) -> None:
        if not request.path.endswith("/pause"):
            check(request, needs, segments)

    patch.setattr(access, "check", careless)


def _viewers_operate(patch: Patch) -> None:
    patch.setitem(roles.HELD, "viewer", frozenset({"read", "operate"}))


def _pools_are_not_compared(patch: Patch) -> None:
    """A worker claims runs of any pool of its namespace."""
    patch.setattr(Member, "_may_work", lambda self, resource: True)


def _events_are_not_compared(patch: Patch) -> None:
    """A producer posts events of any type."""
    patch.setattr(access, "require_events", lambda *given: None)
    patch.setattr("chalicelib.web.routes.events.require_events", lambda *given: None)


def _cursors_of_any_list(patch: Patch) -> None:
    patch.setattr("chalicelib.web.paging._mark", lambda request, position: "x" * 8)


def _hidden_holders_stay_in_limits(patch: Patch) -> None:
    """A pool shows the runs of others that hold its slots."""
    for name in ("limit", "parts", "why"):
        patch.setattr(f"chalicelib.web.unseen.{name}", lambda view, sees: view)


def _hidden_schedules_stay_in_partitions(patch: Patch) -> None:
    """A partition shows the schedules of others that count it."""
    patch.setattr("chalicelib.web.unseen.partition", lambda view, sees: view)


def _errors_name_what_is_hidden(patch: Patch) -> None:
    patch.setattr(SluiceError, "concealing", lambda self, sees: self)


def _strangers_are_told(patch: Patch) -> None:
    """A refusal says that the namespace exists."""
    patch.setattr("chalicelib.core.access.roles.can_see", lambda *given: True)


def _missing_grants_are_told(patch: Patch) -> None:
    """Another error for a name that exists without a grant than for one that nothing has."""
    require = grants.require

    def telling(ports: Any, uses: Any, field: str) -> None:
        for use in grants.used_of(ports, uses).missing:
            if lookup.workflow_of(ports, use.name) is not None:
                raise unknown_reference(field, "granted workflow", use.name)
        require(ports, uses, field)

    patch.setattr(grants, "require", telling)


def _grants_are_not_needed(patch: Patch) -> None:
    patch.setattr(grants, "used_of", lambda ports, uses, known=None: grants.NOTHING)


def _a_letter_of_any_namespace(patch: Patch) -> None:
    """A dead letter is dropped or delivered again by requests to any namespace."""
    existing = dead_letters.existing
    patch.setattr(dead_letters, "existing", lambda ports, ns, run_id: existing(ports, run_id.partition(".")[0], run_id))


def _a_reader_that_writes(patch: Patch) -> None:
    """To read a workflow changes its row."""
    get = store.get

    def writing(ports: Any, kind: Any, name: str) -> Definition:
        row = get(ports, kind, name)
        if kind == "workflow":
            ports.ledger.commit([PutDefinition(replace(row, by="someone"), row.version, row.edition, row)])
        return row

    patch.setattr(store, "get", writing)


def _a_view_that_fails(patch: Patch) -> None:
    def fails(*given: Any, **more: Any) -> Any:
        raise KeyError("planted")

    patch.setattr("chalicelib.web.routes.views.graphs.graph", fails)


def _folders_within_others(patch: Patch) -> None:
    patch.setattr("chalicelib.flow.definitions.prefixes._check_others", lambda *given: None)


def _who_arranged_approves(patch: Patch) -> None:
    patch.setattr("chalicelib.flow.jobs.arrangers.check", lambda *given: None)


def _lists_are_not_compared(patch: Patch) -> None:
    patch.setattr("chalicelib.core.access.allowed.check", lambda *given: None)


PLANTED: list[tuple[str, Callable[[Patch], None]]] = [
    ("allowed", _unchecked_route),
    ("allowed", _viewers_operate),
    ("allowed", _pools_are_not_compared),
    ("allowed", _events_are_not_compared),
    ("cursor", _cursors_of_any_list),
    ("leak", _hidden_holders_stay_in_limits),
    ("leak", _hidden_schedules_stay_in_partitions),
    ("leak", _errors_name_what_is_hidden),
    ("hidden", _strangers_are_told),
    ("existence", _missing_grants_are_told),
    ("grant", _grants_are_not_needed),
    ("foreign row", _a_letter_of_any_namespace),
    ("prefix", _folders_within_others),
    ("arrangement", _who_arranged_approves),
    ("queue", _lists_are_not_compared),
    ("reach", _lists_are_not_compared),
    ("code", _lists_are_not_compared),
    ("wrote", _a_reader_that_writes),
    ("failed", _a_view_that_fails),
]


# The attackers find these after many requests. `make test-long` plants them.
LATE = (
    _unchecked_route,
    _events_are_not_compared,
    _cursors_of_any_list,
    _folders_within_others,
    _who_arranged_approves,
    _hidden_holders_stay_in_limits,
)
CASES = [
    pytest.param(rule, plant, id=f"{rule}-{plant.__name__}", marks=[pytest.mark.long] if plant in LATE else [])
    for rule, plant in PLANTED
]


@pytest.mark.parametrize(("rule", "plant"), CASES)
def test_the_attackers_find_a_planted_defect(
    stages: list[Stage], monkeypatch: pytest.MonkeyPatch, rule: str, plant: Callable[[Patch], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises(Found) as found:
        play(stages, 1, MOST, frozenset({rule}))
    assert found.value.rule == rule
    assert len(found.value.steps) <= 3, str(found.value)
    assert f"--steps {','.join(map(str, found.value.steps))}" in str(found.value)
