"""Each permission of a Lambda is used, or has a stated reason; and no Lambda needs more than it has.

`tests/support/permission_tour.py` uses every flow once and records the needs. `tests/support/permissions.py` checks in
every other test that the roles allow its calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.system import sweep
from infra.local.permissions import Grant, Policy, covers
from tests.acceptance.words import on, partition
from tests.support import permission_page, permission_tour, roles
from tests.support.permissions import Watch, acting, at_work, watched
from tests.support.world import World, day, flights

# The reasons for permissions that no code of Sluice uses, by statement and action.
REASONS = {
    ("WriteOwnLog", "logs:CreateLogStream"): "Lambda begins a log stream of the function by its role.",
    ("WriteOwnLog", "logs:PutLogEvents"): "Lambda writes what the function prints to its log by its role.",
    ("SendTraces", "xray:PutTraceSegments"): "Lambda sends the traces of a stack that is traced by its role.",
    ("SendTraces", "xray:PutTelemetryRecords"): "Lambda sends the traces of a stack that is traced by its role.",
    ("Receive", "sqs:ReceiveMessage"): "Lambda takes the messages out of the queue by the function's role.",
    ("Receive", "sqs:DeleteMessage"): "Lambda deletes the messages that the function has handled by its role.",
    ("Receive", "sqs:GetQueueAttributes"): "Lambda reads how long a message stays hidden before it takes any.",
    ("Runs", "dynamodb:DeleteItem"): "`check` takes back the record of a delivery that crossed with a disable "
    "(`flow/deliveries/books.py`); `faults/meetings/test_deliveries.py` plays that, and no scenario of the tour.",
    ("FindTheStream", "dynamodb:ListStreams"): "Lambda finds the stream of the table by the function's role.",
    ("ReadTheStream", "dynamodb:DescribeStream"): "Lambda learns the shards of the stream by the function's role.",
    ("ReadTheStream", "dynamodb:GetRecords"): "Lambda reads the changes out of the stream by the function's role.",
    ("ReadTheStream", "dynamodb:GetShardIterator"): "Lambda reads the stream from a place by the function's role.",
    ("KeepWhereItFailed", "sqs:SendMessage"): "Lambda tells by the role which part of the stream was given up.",
    ("KeepWhatCouldNotBeApplied", "sqs:SendMessage"): "Lambda keeps an event that failed thrice by the role.",
}


@pytest.fixture(scope="module")
def toured() -> Watch:
    """The needs of each Lambda in the tour."""
    with watched() as watch:
        permission_tour.play()
    return watch


def unused(policies: Mapping[str, Policy], watch: Watch) -> list[tuple[str, Grant]]:
    """The unused permissions of each Lambda, by the name of its handler."""
    found = []
    for name, policy in policies.items():
        needed = watch.of(name)
        found += [(name, grant) for grant in policy.grants() if not any(covers(grant, need) for need in needed)]
    return found


def test_every_permission_is_used_or_has_a_reason(toured: Watch) -> None:
    without = [f"{name}: {grant.statement}, {grant.action} on {grant.resource}"
               for name, grant in unused(roles.policies(), toured)
               if (grant.statement, grant.action) not in REASONS]  # fmt: skip
    assert not without, "nothing uses these: remove them, or say why they are there:\n" + "\n".join(without)


def test_only_an_unused_permission_has_a_reason(toured: Watch) -> None:
    needless = {(grant.statement, grant.action) for _, grant in unused(roles.policies(), toured)}
    assert REASONS.keys() - needless == set()


def test_the_roles_allow_everything_that_the_tests_need(toured: Watch) -> None:
    assert toured.refused == []


def test_an_unused_permission_is_listed(toured: Watch) -> None:
    queue = "arn:aws:sqs:eu-west-1:123456789012:HintsQueue"
    wider = Policy(
        [{"Sid": "Wide", "Effect": "Allow", "Action": ["sqs:SendMessage", "sqs:PurgeQueue"], "Resource": queue}]
    )
    assert unused({"tick": wider}, toured) == [("tick", Grant("Wide", "sqs:PurgeQueue", queue))]


def test_a_call_beyond_the_role_is_reported_though_it_succeeds() -> None:
    narrow = {**roles.policies(), "tick": Policy([])}
    with watched(narrow) as watch:
        world = World()
        world.deploy(flights({}))
        assert watch.refused == []
        sweep.sweep_all(world.ports)
    table = "arn:aws:dynamodb:eu-west-1:123456789012:table"
    assert f"tick may not dynamodb:Query on {table}/JobsTable/index/wake" in watch.refused
    assert all(answer.startswith("tick may not ") for answer in watch.refused)


def test_a_lambda_calling_beyond_its_role_fails_its_test() -> None:
    with watched({**roles.policies(), "tick": Policy([])}) as watch, acting("tick"):
        World().hints.send([Ref("timer", ("demo.flights.clean",))], 0, 0)
        with pytest.raises(AssertionError, match="tick may not sqs:SendMessage"):
            watch.expect_all_allowed()


def test_reads_by_the_test_itself_are_not_calls_of_a_lambda() -> None:
    with watched({name: Policy([]) for name in roles.LAMBDAS.values()}) as watch:
        world = World()
        assert world.ports.rows.get(ScheduleState, "demo.flights.clean") is None
        assert at_work() is None
    assert watch.refused == []


def test_two_crossing_invocations_are_each_checked_by_own_role() -> None:
    """A tick comes while the check calls EMR, and the test reads the runs in between."""
    world = World()
    world.deploy(flights({"each": on(partition(), "clean")}))
    start = world.targets.emr.start

    def slow(run: Any, context: Any) -> Any:
        sweep.sweep_all(world.ports)
        assert len(world.runs("each")) == 1
        return start(run, context)

    world.targets.emr.start = slow
    with watched({**roles.policies(), "tick": Policy([])}) as watch:
        world.upload(day(1))
        world.settle()
    assert any("/index/wake" in answer for answer in watch.refused)
    assert all(answer.startswith("tick may not ") for answer in watch.refused)


def test_stand_ins_for_services_are_checked_by_the_role_too() -> None:
    with watched({**roles.policies(), "check": Policy([])}) as watch, acting("check"):
        World().payloads.put_context("r1", {})
    assert watch.refused == [
        "check may not s3:PutObject on arn:aws:s3:::control/context/r1.json",
        f"check may not kms:GenerateDataKey on {roles.OWN_KEY}, kms:ViaService=s3.eu-west-1.amazonaws.com",
    ]


def test_the_permissions_page_lists_what_each_lambda_may_do() -> None:
    """Written by `python -m tests.support.permission_page`."""
    assert permission_page.reported(roles.policies()) in permission_page.PAGE.read_text()


def test_the_roles_are_those_of_the_packaged_template(template: dict[str, Any]) -> None:
    packaged = roles.of_template(template)
    assert {name: list(policy.grants()) for name, policy in packaged.items()} == {
        name: list(policy.grants()) for name, policy in roles.policies().items()
    }
