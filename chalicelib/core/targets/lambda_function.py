"""A Lambda function as a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from chalicelib.core.access.allowed import Named
from chalicelib.core.targets.target import ARN, REGION, Formatted

FunctionArn = Annotated[
    str,
    Field(pattern=rf"{ARN}lambda:{REGION}:\d{{12}}:function:[A-Za-z0-9_-]{{1,64}}(:[A-Za-z0-9$_-]{{1,128}})?$"),
]


class LambdaTarget(Formatted):
    """A call of a Lambda function. By default it is asynchronous, and Lambda retries failures; with ``wait`` it is
    synchronous, and its answer is the result of the run (W18)."""

    type: Literal["lambda"]
    function: FunctionArn
    wait: bool = False

    @classmethod
    def reports_end(cls, stored: Mapping[str, Any]) -> bool:
        return bool(stored.get("wait"))

    @classmethod
    def returns(cls, stored: Mapping[str, Any]) -> bool:
        return cls.reports_end(stored)

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        return (Named("functions", str(stored["function"]), "function"),)
