"""Ends of support as data: what the template's defaults use is supported for half a year, and said when it is not."""

from __future__ import annotations

import re
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from infra import preflight, support, yaml_tags
from infra.stack import Step
from tests.upgrade import trees

from .conftest import of_type

ROOT = Path(__file__).parents[2]
LABEL = "EmrReleaseLabel"


def runtime(resources: dict[str, Any]) -> support.Version:
    [name] = {properties["Runtime"] for _, properties in of_type(resources, "AWS::Serverless::Function")}
    return support.runtimes()[name]


def default_label(template: dict[str, Any]) -> support.Version:
    return support.labels()[template["Parameters"][LABEL]["Default"]]


def test_o7_what_the_defaults_use_is_supported_for_180_days(
    template: dict[str, Any], resources: dict[str, Any]
) -> None:
    """It fails on purpose when an end comes near. Its message says what to do."""
    today = date.today()
    sentences = [
        *support.ending([runtime(resources)], support.runtimes(), today),
        *support.ending([default_label(template)], support.labels(), today),
    ]
    assert not sentences, "\n".join(
        [
            *sentences,
            "A Lambda runtime: docs/decisions/0112-python-3-13-on-lambda.md says what changes.",
            "A release of EMR: EmrReleaseLabel in infra/resources/parameters.yaml; add its old value to `former`.",
        ]
    )


def test_the_default_release_is_the_newest_with_the_right_spark(template: dict[str, Any]) -> None:
    pinned = re.search(r"^pyspark==(\d+\.\d+)\.\d+$", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    assert pinned
    fitting = [each for each in support.labels().values() if each.spark.rpartition(".")[0] == pinned[1]]
    newest = max(fitting, key=lambda each: [int(part) for part in each.name.removeprefix("emr-").split(".")])
    chosen = default_label(template)
    assert (chosen.name, chosen.until) == (newest.name, max(each.until for each in fitting))
    assert chosen.spark in template["Parameters"][LABEL]["Description"]


def test_the_emulator_has_the_release_of_the_template(template: dict[str, Any]) -> None:
    rollout = (ROOT / "infra/local/rollout.py").read_text()
    assert f'releaseLabel="{template["Parameters"][LABEL]["Default"]}"' in rollout


@pytest.mark.parametrize("days", [180, 179, 0, -1])
def test_an_end_is_named_180_days_ahead_with_what_lasts_longer(days: int) -> None:
    known = support.runtimes()
    version = known["python3.11"]
    sentences = list(support.ending([version], known, version.until - timedelta(days=days)))
    assert bool(sentences) == (days < support.AHEAD)
    for sentence in sentences:
        when = f"ends on 2027-06-30, in {days} days" if days >= 0 else "ended on 2027-06-30"
        assert f"python3.11: its support {when} (https://docs.aws.amazon.com/lambda" in sentence
        assert "python3.13 (2029-06-30)" in sentence


def test_every_end_names_its_source() -> None:
    for version in [*support.runtimes().values(), *support.labels().values()]:
        assert isinstance(version.until, date)
        assert version.source.startswith("https://docs.aws.amazon.com/")


def test_former_defaults_are_none_of_the_present_ones(template: dict[str, Any]) -> None:
    for name, values in support.former_defaults().items():
        assert str(template["Parameters"][name]["Default"]) not in values


def test_a_default_changed_since_the_baseline_is_a_former_one(template: dict[str, Any]) -> None:
    """Without it, nobody would tell the operators of stacks that keep the value."""
    _, commit = trees.baseline()
    shown = ["git", "show", f"{commit}:infra/resources/parameters.yaml"]
    done = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"expected a clone with the baseline of tests/upgrade: {done.stderr.strip()}")
    before = yaml_tags.load(done.stdout)["Parameters"]
    former = support.former_defaults()
    changed = {
        name: str(declared["Default"])
        for name, declared in before.items()
        if name in template["Parameters"] and declared["Default"] != template["Parameters"][name]["Default"]
    }
    assert not {name: value for name, value in changed.items() if value not in former.get(name, [])}


def warnings(given: dict[str, str], present: dict[str, str], today: date = date(2026, 11, 27)) -> list[Step]:
    steps: list[Step] = []
    defaults = {LABEL: "emr-7.14.0", "ApiMemory": "1769", "CheckConcurrency": "20"}
    preflight.warn(given, defaults, present, today, steps.append)
    return steps


def test_o7_a_kept_parameter_behind_the_defaults_is_named() -> None:
    """CloudFormation keeps the value of a parameter that a deployment does not name, also if the default changes."""
    kept = {LABEL: "emr-7.9.0", "ApiMemory": "1024", "CheckConcurrency": "100"}
    said = {(step.resource, step.status): step.reason for step in warnings({}, kept)}
    assert said[("ApiMemory", "WARNING")].endswith("Take the new one: ApiMemory=1769")
    assert "emr-7.9.0" in said[(LABEL, "WARNING")]
    assert "CheckConcurrency" not in {resource for resource, _ in said}, "a value of one's own is not behind"
    assert warnings({LABEL: "emr-7.14.0", "ApiMemory": "1024"}, kept) == []
    assert warnings({}, {}) == [], "a new stack takes the defaults"


def test_a_given_release_whose_support_ends_is_named() -> None:
    [step] = warnings({LABEL: "emr-7.9.0"}, {})
    assert (step.resource, step.status) == (LABEL, "WARNING")
    assert step.reason.startswith("emr-7.9.0: its support ends on 2027-05-19, in 173 days")
    assert "emr-7.14.0 (2028-09-08)" in step.reason
    assert warnings({LABEL: "emr-7.9.0", "EmrApplicationId": "00abc"}, {}) == [], "the stack makes no application"
