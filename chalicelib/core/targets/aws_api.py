"""Any call of AWS's API as a target (W22)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named
from chalicelib.core.targets import templates
from chalicelib.core.targets.target import Delivered


class AwsApiTarget(Delivered):
    """A call of AWS's API that is answered at once, such as ``{service: sns, action: publish, input: {...}}``.

    Texts of the ``input`` may hold values of the run context. With ``result``, the answer is the result of the run
    (W18). What calls there are, and which input each takes, the models of AWS say."""

    needs_role: ClassVar[bool] = True
    has_model: ClassVar[bool] = True

    type: Literal["aws_api"]
    service: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    action: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,127}$")
    input: dict[str, Any] = Field(default_factory=dict)
    result: bool = False

    @model_validator(mode="after")
    def _has_placeholders(self) -> AwsApiTarget:
        templates.check(self.input, "input")
        return self

    @classmethod
    def reports_end(cls, stored: Mapping[str, Any]) -> bool:
        return True

    @classmethod
    def returns(cls, stored: Mapping[str, Any]) -> bool:
        return bool(stored.get("result"))

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        words = str(stored["action"]).split("_")
        operation = "".join(word[:1].upper() + word[1:] for word in words)
        return (Named("actions", f"{stored['service']}:{operation}", "action"),)
