"""Random requests to each operation of the API are answered or refused: never 500, and none hangs. The long tests
also bound the CPU time of each.

Each request goes to the app in this process, on tables in memory. The numbers of answers are printed (`pytest -s`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy, sampled_from

from chalicelib.core.access.roles import ROLES
from chalicelib.core.rows.access import AccessRow
from chalicelib.core.writes import Put
from chalicelib.web import quotas
from tests.fuzz.requests import OPERATIONS, Asked, Operation, large_requests, names_changed, requests
from tests.fuzz.values import bounded, documents, no_hang
from tests.support.schedules import after, at, at_most, partitions
from tests.support.world import EMR, World, day, flights
from tests.web.many_schedules import Counting
from tests.web.signed import Signer, member, role

Make = Callable[[Operation], SearchStrategy[Asked]]


OURS, THEIRS = "demo", "hidden"
# What exists in the other namespace alone. No answer to a member of the first has one of these words, unless the
# request has it.
SECRETS = ("vault9", "treasure9", "heist9", "midnight9", "dawn9", "gems9", "trickle9", "raid9")
# Names that a request gets at random, in the place of those that exist in its own namespace.
FOREIGN: tuple[Mapping[str, str], ...] = (
    {},
    {},
    {"demo": "hidden"},
    {
        "demo": "hidden",
        "flights": "vault9",
        "each": "midnight9",
        "clean": "heist9",
        "landing": "treasure9",
        "p": "gems9",
    },
    {"clean": "hidden.vault9.heist9", "demo.flights.clean": "hidden.vault9.heist9"},
    {"landing": "hidden.treasure9", "demo.landing": "hidden.treasure9", "p": "hidden.gems9"},
)
MEMBERS = {name: Signer(role(f"the-{name}")) for name in ROLES}
SIGNERS = (*(signer.arn for signer in MEMBERS.values()), Signer(role("stranger")).arn)
ACCESS = {
    OURS: [{"member": member(f"the-{name}"), "roles": [name]} for name in ROLES],
    THEIRS: [{"member": member("boss"), "roles": ["admin"]}],
}


def _deployed(mode: str) -> World:
    """An app with schedules, jobs and runs; where roles are enforced, also that of another namespace, which uses what
    the first one grants. Requests change it as they go."""
    made = World(authorization=mode)
    waiting = partitions(3, "notify", timeout="never")
    made.deploy(flights({"each": partitions(1, "clean"), "timed": at("0 5 * * *", "notify"), "held": waiting}))
    if mode == "enforce":
        everything = {kind: ["*"] for kind in ("run", "follow", "context", "datasets", "events", "pools", "policies")}
        made.grant(OURS, {"grants": [{"to": THEIRS, **everything}]})
        single = at_most(1)
        other = {
            "datasets": {"treasure9": {"bucket": "lake", "prefix": "vault9/", "keys": ["day"]}},
            "workflows": {"heist9": {"target": EMR}},
            "schedules": {
                "midnight9": {**partitions(1, "demo.flights.clean", **single), "trigger": COUNTS},
                "dawn9": after("demo.flights.clean", "heist9"),
                "raid9": at("0 5 * * *", "heist9"),
            },
            "pools": {"gems9": {"size": 4}},
            "policies": {"trickle9": {"max_events": 3, "interval": "1m"}},
        }
        made.deploy(other, THEIRS, "vault9")
    made.upload(day(1))
    made.settle()
    return made


COUNTS = {"type": "partition", "dataset": "demo.flights"}


def _members(made: World) -> None:
    """Give each role its member again: a request of an admin may have taken it away."""
    for namespace, members in ACCESS.items():
        made.ports.ledger.commit([Put(AccessRow(namespace, {"members": members}, 1, made.clock.now(), "tester"))])


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield from _world("off")


@pytest.fixture(scope="module")
def enforced() -> Iterator[World]:
    yield from _world("enforce")


def _world(mode: str) -> Iterator[World]:
    made = _deployed(mode)
    with pytest.MonkeyPatch.context() as patch:
        Counting(made, patch)
        yield made


def play(world: World, make: Make, operations: Sequence[Operation], examples: int, derandomize: bool) -> Counter[str]:
    """Send so many requests to each operation. Returns the number of answers by status. Random requests that differ
    in each run are of the long tests, and have a bound of CPU time."""
    counts: Counter[str] = Counter()
    enforces = world.ports.settings.authorization == "enforce"

    def send(asked: Asked, signer: str, names: Mapping[str, str]) -> None:
        quotas.memory.cache_clear()  # the clock of the world stands still, so the rate of requests never recovers
        if enforces:
            asked = replace(names_changed(asked, names), signer=signer)
        try:
            carried = documents(json.loads(asked.body or "null"))
        except (ValueError, RecursionError):
            carried = 1
        with no_hang() if derandomize else bounded(carried):
            status, content = asked.send()
        assert status < 500, f"{asked.method} {asked.path}: {status} {content}"
        assert status < 400 or {"code", "message"} <= content["error"].keys(), content
        counts[f"{status // 100}xx"] += 1
        if enforces:
            told, said = json.dumps(content), asked.text
            named = [word for word in SECRETS if word in told and word not in said]
            assert not named, f"{asked.method} {asked.path} by {signer} names {named}: {told[:2_000]}"

    for operation in operations:
        if enforces:
            _members(world)
        random = settings(
            max_examples=examples, derandomize=derandomize, database=None, deadline=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        random(given(make(operation), sampled_from(SIGNERS), sampled_from(FOREIGN))(send))()
    print(f"{len(operations)} operations: {dict(counts)}")
    return counts


WITH_BODY = [operation for operation in OPERATIONS if "requestBody" in operation[2]]


def test_no_request_fails_or_hangs(world: World) -> None:
    counts = play(world, requests, OPERATIONS, 4, derandomize=True)
    assert counts["2xx"] >= 20 and counts["4xx"] >= 20, dict(counts)


def test_no_large_request_fails_or_hangs(world: World) -> None:
    play(world, large_requests, WITH_BODY, 4, derandomize=True)


@pytest.mark.long
def test_none_of_many_requests_fails_or_costs_much_time(world: World) -> None:
    play(world, requests, OPERATIONS, 200, derandomize=False)


@pytest.mark.long
def test_none_of_many_large_requests_costs_more(world: World) -> None:
    play(world, large_requests, WITH_BODY, 40, derandomize=False)


def test_no_request_of_a_member_fails_or_names_what_is_hidden(enforced: World) -> None:
    counts = play(enforced, requests, OPERATIONS, 4, derandomize=True)
    assert counts["2xx"] >= 20 and counts["4xx"] >= 20, dict(counts)


@pytest.mark.long
def test_no_request_of_members_fails_or_names_what_is_hidden(enforced: World) -> None:
    play(enforced, requests, OPERATIONS, 200, derandomize=False)
