"""Where a stack is, and its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """The name, account, region and partition of a stack."""

    stack: str
    account: str
    region: str
    partition: str = "aws"

    @property
    def suffix(self) -> str:
        """The domain of AWS's services, as `AWS::URLSuffix`."""
        return "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"


def place_of(session: Any, stack: str) -> Place:
    """The place of a stack in the account and region of a session."""
    region = session.region_name
    account = session.client("sts").get_caller_identity()["Account"]
    return Place(stack, account, region, session.get_partition_for_region(region))
