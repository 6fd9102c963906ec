"""Values of the template as CloudFormation resolves them: only the functions that our fragments use.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_NOTHING = object()


class Resolver:
    """The template with parameters.

    ``pseudo`` are values such as that of AWS::Region. ``made`` returns what only a created resource has: its reference
    (``HintsQueue``) or an attribute (``HintsQueue.Arn``)."""

    def __init__(
        self,
        template: Mapping[str, Any],
        parameters: Mapping[str, str],
        pseudo: Mapping[str, str],
        made: Callable[[str], str],
    ) -> None:
        self._template, self._made = template, made
        self._values: dict[str, Any] = dict(pseudo)
        for name, declared in template["Parameters"].items():
            text = str(parameters.get(name, declared.get("Default", "")))
            entries = [entry.strip() for entry in text.split(",")]
            self._values[name] = entries if declared["Type"] == "CommaDelimitedList" else text

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

    def holds(self, condition: str) -> bool:
        """Whether a condition of the template is met."""
        return self._holds(self._template["Conditions"][condition])

    def _call(self, function: str, argument: Any) -> Any:
        match function:
            case "Ref":
                return _NOTHING if argument == "AWS::NoValue" else self._named(argument)
            case "Fn::GetAtt":
                return self._made(".".join(argument))
            case "Fn::If":
                name, then, otherwise = argument
                return self(then if self.holds(name) else otherwise)
            case "Fn::Join":
                delimiter, parts = argument
                if not isinstance(delimiter, str):
                    raise TypeError("CloudFormation takes no function as the delimiter of a join")
                return delimiter.join(self(parts))
            case "Fn::Split":
                return str(self(argument[1])).split(argument[0])
            case "Fn::Sub":
                text, own = argument if isinstance(argument, list) else (argument, {})
                known = {name: self(each) for name, each in own.items()}
                return re.sub(
                    r"\$\{([^}]+)\}",
                    lambda found: str(known[found[1]] if found[1] in known else self._named(found[1])),
                    text,
                )
        raise NotImplementedError(f"expected a function that infra/resolver.py knows, got {function}")

    def _named(self, name: str) -> Any:
        return self._values[name] if name in self._values else self._made(name)

    def _holds(self, condition: Any) -> bool:
        function, argument = next(iter(condition.items()))
        match function:
            case "Fn::Not":
                return not self._holds(argument[0])
            case "Fn::And":
                return all(map(self._holds, argument))
            case "Fn::Equals":
                return bool(self(argument[0]) == self(argument[1]))
        raise NotImplementedError(f"expected a condition that infra/resolver.py knows, got {function}")
