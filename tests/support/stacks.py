"""A CloudFormation of one resource: it sends requests for a custom resource as the service does, and takes the answers.

- Each property is a text, or a list or object of texts.
- An update whose properties are those of before sends nothing.
- Another physical id in the answer to an update replaces the resource: the former one is deleted afterwards.
- After an update that failed comes an update to the former properties; after a create that failed, a delete.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sluice import cloudformation

Event = dict[str, Any]
MAX_ANSWER, MAX_ID = 4_096, 1_024  # bytes

_numbers = count(1)


def as_texts(value: Any) -> Any:
    """A property as CloudFormation sends it."""
    if isinstance(value, Mapping):
        return {name: as_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_texts(each) for each in value]
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


@dataclass
class Stack:
    """A stack with the resource ``Shop``. ``carry_out`` is the Lambda. ``events`` are its event lines, as
    ``UPDATE_FAILED: reason``; ``sent`` are all requests."""

    carry_out: Callable[[Event], cloudformation.Done]
    name: str = "orders"
    number: int = field(default_factory=lambda: next(_numbers))
    physical_id: str | None = None
    properties: Any = None
    events: list[str] = field(default_factory=list)
    sent: list[Event] = field(default_factory=list)
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{self.name}/{self.number:032x}"

    def put(self, **properties: Any) -> bool:
        """Create the resource, or update it. Returns whether that succeeded."""
        wanted = as_texts(properties)
        if self.physical_id is None:
            return self._create(wanted)
        if wanted == self.properties:
            return True
        before, former = self.properties, self.physical_id
        done = self._send("Update", wanted, former, before)
        if done.failed:
            self._send("Update", before, former, wanted)
            return False
        self.properties, self.physical_id, self.data = wanted, done.id, done.data
        if done.id != former:
            self._send("Delete", before, former)
        return True

    def delete(self) -> bool:
        if self.physical_id is None:
            return True
        done = self._send("Delete", self.properties, self.physical_id)
        if not done.failed:
            self.physical_id = self.properties = None
        return not done.failed

    def _create(self, wanted: Any) -> bool:
        done = self._send("Create", wanted)
        if done.failed:
            self._send("Delete", wanted, done.id)
            return False
        self.physical_id, self.properties, self.data = done.id, wanted, done.data
        return True

    def _send(self, kind: str, properties: Any, physical_id: str | None = None, old: Any = None) -> cloudformation.Done:
        event = {
            "RequestType": kind,
            "ResponseURL": "http://127.0.0.1:9/answer",
            "StackId": self.id,
            "RequestId": f"{next(_numbers):08x}-0000-0000-0000-000000000000",
            "ResourceType": "Custom::SluiceApp",
            "LogicalResourceId": "Shop",
            **({"PhysicalResourceId": physical_id} if physical_id is not None else {}),
            "ResourceProperties": {
                "ServiceToken": "arn:aws:lambda:eu-central-1:123456789012:function:apps",
                **properties,
            },
            **({"OldResourceProperties": old} if old is not None else {}),
        }
        self.sent.append(event)
        done = self.carry_out(event)
        answer = cloudformation.answer_to(event, done)
        assert len(json.dumps(answer).encode()) <= MAX_ANSWER, answer
        assert 0 < len(done.id.encode()) <= MAX_ID
        assert done.reason
        self.events.append(f"{kind.upper()}_{'FAILED' if done.failed else 'COMPLETE'}: {done.reason}")
        return done
