"""CloudFormation's YAML, read and written without an AWS library.

`!Ref x` and `!GetAtt a.b` are short forms that plain YAML loaders refuse. They are read into their long forms
(`{"Ref": "x"}`, `{"Fn::GetAtt": ["a", "b"]}`), so that all other modules handle only plain data.
"""

from typing import Any, cast

import yaml

_SHORT_FORMS = ("And", "Equals", "FindInMap", "If", "Join", "Not", "Or", "Select", "Split", "Sub")


class _Loader(yaml.SafeLoader):
    """Safe loading plus CloudFormation's tags; a separate class, because constructors are registered per class."""


class _Dumper(yaml.SafeDumper):
    """Writes every value in full: CloudFormation accepts no YAML anchors from a `TemplateURL`."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _plain(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)


def _get_att(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    value = _plain(loader, node)
    return {"Fn::GetAtt": value.split(".", 1) if isinstance(value, str) else value}


def _function(name: str) -> Any:
    return lambda loader, node: {name: _plain(loader, node)}


for _name in _SHORT_FORMS:
    _Loader.add_constructor(f"!{_name}", _function(f"Fn::{_name}"))
_Loader.add_constructor("!Ref", _function("Ref"))
_Loader.add_constructor("!Condition", _function("Condition"))
_Loader.add_constructor("!GetAtt", _get_att)


def load(text: str) -> dict[str, Any]:
    """The mapping in a template fragment, with every short tag in its long form.

    Raises `ValueError` if the text is no YAML mapping.
    """
    try:
        value = yaml.load(text, Loader=_Loader)  # _Loader is a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"expected YAML with CloudFormation's tags: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a YAML mapping, got {type(value).__name__}")
    return value


def dump(value: dict[str, Any]) -> str:
    """The mapping as YAML, keys in the order given, long forms only."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120)
