"""Values of the template as CloudFormation resolves them: only the functions that our fragments use.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "eu-west-1", "AWS::AccountId": "123456789012", "AWS::StackName": "s",
          "AWS::URLSuffix": "amazonaws.com"}  # fmt: skip
_NOTHING = object()


class Resolver:
    """The template with parameters. ``attributes`` are those of resources, by ``Resource.Attribute``."""

    def __init__(self, template: dict[str, Any], attributes: Mapping[str, str], **given: str) -> None:
        self._template, self._attributes = template, attributes
        self._values: dict[str, Any] = dict(PSEUDO)
        for name, parameter in template["Parameters"].items():
            text = str(given.pop(name, parameter.get("Default", "")))
            if parameter["Type"] == "CommaDelimitedList":
                entries = [entry.strip() for entry in text.split(",")]
                _check(name, parameter, entries)
                self._values[name] = entries
            else:
                _check(name, parameter, [text])
                self._values[name] = text
        assert not given, f"the template has no parameters {sorted(given)}"

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [each for each in map(self, value) if each is not _NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            function, argument = next(iter(value.items()))
            if function == "Ref" or function.startswith("Fn::"):
                return self._call(function, argument)
        resolved = {key: self(each) for key, each in value.items()}
        return {key: each for key, each in resolved.items() if each is not _NOTHING}

    def _call(self, function: str, argument: Any) -> Any:
        match function:
            case "Ref":
                return _NOTHING if argument == "AWS::NoValue" else self._values.get(argument, argument)
            case "Fn::GetAtt":
                return self._attributes[".".join(argument)]
            case "Fn::If":
                name, then, otherwise = argument
                return self(then if self._holds(self._template["Conditions"][name]) else otherwise)
            case "Fn::Join":
                delimiter, parts = argument
                assert isinstance(delimiter, str), "CloudFormation takes no function as the delimiter of a join"
                return delimiter.join(self(parts))
            case "Fn::Split":
                return str(self(argument[1])).split(argument[0])
            case "Fn::Sub":
                text, own = argument if isinstance(argument, list) else (argument, {})
                return re.sub(r"\$\{([^}]+)\}", lambda found: self._named(found[1], own), text)
        raise AssertionError(f"no test needed {function} yet")

    def _named(self, name: str, own: Mapping[str, Any]) -> str:
        if name in own:
            return str(self(own[name]))
        return str(self._attributes[name] if name in self._attributes else self._values[name])

    def _holds(self, condition: Any) -> bool:
        function, argument = next(iter(condition.items()))
        if function == "Fn::Not":
            return not self._holds(argument[0])
        assert function == "Fn::Equals", condition
        return bool(self(argument[0]) == self(argument[1]))


def _check(name: str, parameter: Mapping[str, Any], entries: list[str]) -> None:
    """Each entry of a list must match the pattern."""
    pattern = parameter.get("AllowedPattern", ".*")
    assert all(re.fullmatch(pattern, entry) for entry in entries), f"{name} does not allow {entries}"
