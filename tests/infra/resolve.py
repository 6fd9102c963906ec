"""Values of the template with parameters that its patterns allow, and attributes of resources that a test names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from infra import resolver

PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "123456789012",
    "AWS::StackName": "s",
    "AWS::URLSuffix": "amazonaws.com",
}


class Resolver(resolver.Resolver):
    """The template with parameters. ``attributes`` are those of resources, by ``Resource.Attribute``."""

    def __init__(self, template: dict[str, Any], attributes: Mapping[str, str], **given: str) -> None:
        unknown = set(given) - set(template["Parameters"])
        assert not unknown, f"the template has no parameters {sorted(unknown)}"
        super().__init__(template, given, PSEUDO, lambda name: attributes[name] if "." in name else name)
        for name, parameter in template["Parameters"].items():
            entries = self._values[name] if isinstance(self._values[name], list) else [self._values[name]]
            pattern = parameter.get("AllowedPattern", ".*")
            assert all(re.fullmatch(pattern, entry) for entry in entries), f"{name} does not allow {entries}"
