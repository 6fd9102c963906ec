"""One installation, found by the name of its stack: its settings, its tables, and its Lambdas, frozen or not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from chalicelib import wiring
from chalicelib.aws.hints import SqsHints
from chalicelib.aws.s3.lake import S3Lake
from chalicelib.aws.s3.payloads import S3Payloads
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.table_ports import table_ports
from chalicelib.ports import Ports
from chalicelib.settings import Settings
from sluice.errors import WrongUsage
from sluice.operations.copies import DynamoCopies

KEPT = "sluice:reserved-concurrency"  # the tag of a frozen Lambda: what was reserved before, or none
NONE = "none"
_CHECK = "CheckFunction"


@dataclass(frozen=True)
class Installation:
    """``session`` is a boto3 session with the administrator's rights."""

    stack: str
    session: Any
    settings: Settings

    @classmethod
    def of(cls, stack: str, session: Any, tables: Mapping[str, str] | None = None) -> Installation:
        """The installation of a stack. ``tables`` are the names of other tables than its own, such as restored ones."""
        try:
            [found] = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            hint = "name the stack, such as sluice-prod, and check account and region: aws cloudformation list-stacks"
            raise WrongUsage(f"expected a stack, got {stack}: {error}", "--stack", hint) from None
        outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}
        if _CHECK not in outputs:
            raise WrongUsage(f"expected a stack of Sluice, got {stack}", "--stack", "its name is sluice-<stage>")
        functions = session.client("lambda")
        made = functions.get_function_configuration(FunctionName=outputs[_CHECK])
        settings = Settings.from_environment(made["Environment"]["Variables"])
        names: dict[str, Any] = dict(tables or {})
        return cls(stack, session, replace(settings, **names))

    def client(self) -> Any:
        """A client of DynamoDB. `tries` repeats its calls."""
        return self.session.client("dynamodb", config=Config(retries={"total_max_attempts": 1}, read_timeout=20))

    def copies(self) -> DynamoCopies:
        return DynamoCopies(self.client(), self.settings)

    def ports(self) -> Ports:
        """The ports of the service, with this session's rights. Hints reach the queue of the installation."""
        dynamo, clock = Dynamo(self.client(), self.settings), wiring.SystemClock()
        s3 = self.session.client("s3")
        return Ports(
            clock=clock,
            ledger=dynamo,
            **table_ports(dynamo),
            hints=SqsHints(self.session.client("sqs"), self.settings.hints_queue_url, clock),
            targets=wiring.targets(self.settings),
            payloads=S3Payloads(s3, self.settings.control_bucket),
            lake=S3Lake(s3),
            settings=self.settings,
        )

    def functions(self) -> Iterator[str]:
        """The names of its Lambdas."""
        pages = self.session.client("cloudformation").get_paginator("list_stack_resources")
        for page in pages.paginate(StackName=self.stack):
            for found in page["StackResourceSummaries"]:
                if found["ResourceType"] == "AWS::Lambda::Function":
                    yield found["PhysicalResourceId"]

    def require_frozen(self) -> None:
        """Raises `WrongUsage` if a Lambda of the installation may run."""
        client = self.session.client("lambda")
        free = [name for name in self.functions() if _reserved(client, name) != 0]
        if free:
            message = f"expected a frozen installation, got {', '.join(sorted(free))} free to run"
            raise WrongUsage(message, "--stack", f"freeze it first: sluice freeze --stack {self.stack}")

    def freeze(self, wait: Callable[[float], None] = time.sleep) -> int:
        """Let no Lambda begin, and wait until the running ones must have ended. Returns how many Lambdas are frozen."""
        client, longest, names = self.session.client("lambda"), 0, sorted(self.functions())
        for name in names:
            made = client.get_function_configuration(FunctionName=name)
            longest = max(longest, made["Timeout"])
            before = _reserved(client, name)
            if before == 0:
                continue
            client.tag_resource(Resource=made["FunctionArn"], Tags={KEPT: NONE if before is None else str(before)})
            client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        wait(longest)
        return len(names)

    def unfreeze(self) -> int:
        """Let the Lambdas run again, with the concurrency that was reserved before. Returns how many were frozen."""
        client, count = self.session.client("lambda"), 0
        for name in sorted(self.functions()):
            if _reserved(client, name) != 0:
                continue
            arn = client.get_function_configuration(FunctionName=name)["FunctionArn"]
            before = client.list_tags(Resource=arn)["Tags"].get(KEPT, NONE)
            if before == NONE:
                client.delete_function_concurrency(FunctionName=name)
            else:
                client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=int(before))
            client.untag_resource(Resource=arn, TagKeys=[KEPT])
            count += 1
        return count


def _reserved(client: Any, name: str) -> int | None:
    found = client.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
    return None if found is None else int(found)
