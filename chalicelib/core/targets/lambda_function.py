"""A Lambda function as a target."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.core.targets.arns import ARN, REGION
from chalicelib.core.targets.target import Delivered

FunctionArn = Annotated[
    str,
    Field(pattern=rf"{ARN}lambda:{REGION}:\d{{12}}:function:[A-Za-z0-9_-]{{1,64}}(:[A-Za-z0-9$_-]{{1,128}})?$"),
]


class LambdaTarget(Delivered):
    """A call of a Lambda function. By default it is asynchronous, and Lambda retries failures; with ``wait`` it is
    synchronous, and Sluice reads the answer."""

    type: Literal["lambda"]
    function: FunctionArn
    wait: bool = False
