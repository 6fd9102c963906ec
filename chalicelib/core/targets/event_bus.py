"""An EventBridge bus as a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from chalicelib.core.access.allowed import Named, own_arn
from chalicelib.core.documents import ONE_LINE
from chalicelib.core.errors import invalid
from chalicelib.core.targets.target import REGION, Formatted


class EventBusTarget(Formatted):
    """An event on an EventBridge bus. The rules of the bus see its ``source`` and ``detail_type``."""

    batched_by: ClassVar[str | None] = "bus"

    type: Literal["event_bus"]
    bus: str = Field(pattern=rf"^([A-Za-z0-9_.-]{{1,256}}|arn:aws[a-z-]*:events:{REGION}:\d{{12}}:event-bus/.+)$")
    source: str = Field(default="sluice.delivery", pattern=r"^[!-~]{1,256}$")
    detail_type: Annotated[str, Field(min_length=1, max_length=128), ONE_LINE] = "Sluice Delivery"

    @field_validator("source")
    @classmethod
    def _is_free(cls, source: str) -> str:
        if source.startswith(("aws.", "sluice/")):
            hint = "aws. is reserved by AWS; Sluice would take sluice/ for a custom event of a namespace"
            raise invalid("", "a source that begins with neither aws. nor sluice/", source, hint)
        return source

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        bus = str(stored["bus"])
        return (Named("buses", bus if ":" in bus else own_arn("events", f"event-bus/{bus}"), "bus", bus),)
