"""CloudFormation's short tags are read as long forms, and only long forms are written."""

import pytest

from infra import yaml_tags


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: !Ref B", {"Ref": "B"}),
        ("a: !GetAtt B.Arn", {"Fn::GetAtt": ["B", "Arn"]}),
        ("a: !GetAtt [B, Arn]", {"Fn::GetAtt": ["B", "Arn"]}),
        ("a: !Sub '${B}/*'", {"Fn::Sub": "${B}/*"}),
        ("a: !If [C, !Ref B, !Ref AWS::NoValue]", {"Fn::If": ["C", {"Ref": "B"}, {"Ref": "AWS::NoValue"}]}),
        ("a: !Not [!Equals [!Ref B, '']]", {"Fn::Not": [{"Fn::Equals": [{"Ref": "B"}, ""]}]}),
    ],
)
def test_short_yaml_tags_become_long_forms(text: str, value: object) -> None:
    assert yaml_tags.load(text) == {"a": value}


def test_a_written_template_is_read_back_without_anchors() -> None:
    shared = ["x", "y"]
    text = yaml_tags.dump({"a": shared, "b": shared, "c": {"Ref": "D"}})
    assert "&" not in text
    assert yaml_tags.load(text) == {"a": shared, "b": shared, "c": {"Ref": "D"}}


@pytest.mark.parametrize("text", ["- a", "a: !Nonsense b", "a: [", ""])
def test_any_other_yaml_tag_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        yaml_tags.load(text)
