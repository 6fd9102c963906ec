"""The job role of a namespace: what it reads and writes, and that it reaches nothing of others."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chalicelib.aws.s3.payloads import S3Payloads
from chalicelib.core import ids
from infra import job_role, yaml_tags
from infra.local.permissions import Need, Policy

from .resolve import Resolver
from .test_policies import statements

BUCKETS = {"LakeBucket": "lake", "ControlBucket": "control"}
LAKE, CONTROL = "arn:aws:s3:::lake", "arn:aws:s3:::control"
HISTORY = ("history/", "history_late/", "history_compact/", "history_report/")


def policy(*arguments: Any, **options: Any) -> Policy:
    key = {"KmsKeyArn": options.pop("key")} if "key" in options else {}
    made = job_role.template(*arguments, **options)
    inline = Resolver(made, {}, **BUCKETS, **key)(made["Resources"]["JobRole"]["Properties"]["Policies"])
    return Policy(each for policy in inline for each in policy["PolicyDocument"]["Statement"])


def may(role: Policy, action: str, resource: str, **keys: str) -> bool:
    return role.allows(Need(f"s3:{action}", resource, tuple((k.replace("_", ":"), v) for k, v in keys.items())))


def context_of(schedule: str) -> str:
    """The ARN of the context of a run, by the code that names it."""
    run_id = ids.job_id(schedule, 1, "e1")
    return S3Payloads(None, "control").context_uri(run_id).replace("s3://", "arn:aws:s3:::")


def test_a_role_reads_and_writes_the_folders_of_its_namespace() -> None:
    role = policy("demo", ["raw/demo/", "curated/demo/"])
    for prefix in ("raw/demo", "curated/demo"):
        assert may(role, "GetObject", f"{LAKE}/{prefix}/day=1/a")
        assert may(role, "PutObject", f"{LAKE}/{prefix}/day=1/a")
        assert may(role, "DeleteObject", f"{LAKE}/{prefix}/day=1/a")
        assert may(role, "ListBucket", LAKE, s3_prefix=f"{prefix}/day=1/")
        assert may(role, "ListBucket", LAKE, s3_prefix=prefix)
    assert may(role, "GetObject", context_of("demo.flights.clean"))
    assert may(role, "GetObject", f"{CONTROL}/manifests/demo.flights.clean.1.x.jsonl")
    assert may(role, "GetObject", f"{CONTROL}/code/demo/flights/clean.py")
    assert may(role, "PutObject", f"{CONTROL}/logs/demo/applications/00a/jobs/1/SPARK_DRIVER/stdout.gz")


def test_w18_a_role_writes_the_results_of_its_namespace_alone() -> None:
    role, called = policy("demo"), policy("demo", callers=["marketing"])
    for schedule, allowed in (("demo.flights.clean", [role, called]), ("marketing.daily.clean", [called])):
        uri = S3Payloads(None, "control").result_uri(ids.job_id(schedule, 1, "e1"), 1)
        key = uri.removeprefix("s3://control/")
        for action in ("PutObject", "GetObject"):
            assert [each for each in (role, called) if may(each, action, f"{CONTROL}/{key}")] == allowed
        listing = [each for each in (role, called) if may(each, "ListBucket", CONTROL, s3_prefix=key)]
        assert listing == allowed


@pytest.mark.parametrize("other", ["demo2", "demo-b", "de", "sales"])
def test_a_role_reaches_nothing_of_another_namespace(other: str) -> None:
    role = policy("demo", ["raw/demo/"])
    for key in (f"raw/{other}/a", f"{other}/a", "a"):
        assert not any(may(role, action, f"{LAKE}/{key}") for action in ("GetObject", "PutObject", "DeleteObject"))
    assert not may(role, "GetObject", context_of(f"{other}.flights.clean"))
    assert not may(role, "GetObject", f"{CONTROL}/manifests/{other}.flights.clean.1.x.jsonl")
    assert not may(role, "GetObject", f"{CONTROL}/code/{other}/flights/clean.py")
    assert not may(role, "PutObject", f"{CONTROL}/logs/{other}/applications/00a/jobs/1/SPARK_DRIVER/stdout.gz")
    assert not may(role, "ListBucket", LAKE, s3_prefix=f"raw/{other}/")
    assert not may(role, "ListBucket", LAKE)
    assert not may(role, "ListBucket", CONTROL, s3_prefix="context/")


@pytest.mark.parametrize("action", ["PutObject", "DeleteObject"])
def test_a_role_writes_no_context_and_no_script(action: str) -> None:
    role = policy("demo")
    assert not may(role, action, context_of("demo.flights.clean"))
    assert not may(role, action, f"{CONTROL}/code/demo/flights/clean.py")
    assert not may(role, action, f"{CONTROL}/manifests/demo.flights.clean.1.x.jsonl")


@pytest.mark.parametrize("prefix", HISTORY)
def test_no_role_of_a_namespace_writes_history(prefix: str) -> None:
    with pytest.raises(job_role.BadRole, match="without history"):
        job_role.template("demo", [f"{prefix}day=1/"])
    role = policy("history", ["history_of_art/"])
    assert may(role, "PutObject", f"{LAKE}/history_of_art/a")
    assert not may(role, "PutObject", f"{LAKE}/{prefix}day=1/a")


@pytest.mark.parametrize("prefix", HISTORY)
def test_a_policy_that_is_added_later_opens_no_history(prefix: str) -> None:
    made = job_role.template("demo")
    [inline] = Resolver(made, {}, **BUCKETS)(made["Resources"]["JobRole"]["Properties"]["Policies"])
    added = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    role = Policy([*inline["PolicyDocument"]["Statement"], added])
    assert may(role, "PutObject", f"{LAKE}/other/a")
    assert not may(role, "PutObject", f"{LAKE}/{prefix}day=1/a")
    assert not may(role, "DeleteObject", f"{LAKE}/{prefix}day=1/a")


@pytest.mark.parametrize("prefix", ["history/", "history_late/"])
def test_the_role_of_the_stack_writes_no_raw_history(resources: dict[str, Any], prefix: str) -> None:
    attributes = {"LakeBucket.Arn": LAKE, "ControlBucket.Arn": CONTROL}
    resolve = Resolver({"Parameters": {}}, attributes)
    role = Policy([resolve(each) for each in statements(resources, "EmrJobRole")])
    assert may(role, "PutObject", f"{LAKE}/clean/day=1/a")
    assert may(role, "PutObject", f"{LAKE}/history_compact/day=1/a"), (
        "the job that compacts history runs with this role"
    )
    assert not may(role, "PutObject", f"{LAKE}/{prefix}day=1/a")
    assert not may(role, "DeleteObject", f"{LAKE}/{prefix}day=1/a")


def test_callers_are_the_namespaces_whose_contexts_are_read() -> None:
    alone, called = policy("lake"), policy("lake", callers=["marketing"])
    assert not may(alone, "GetObject", context_of("marketing.daily.clean"))
    assert may(called, "GetObject", context_of("marketing.daily.clean"))
    assert not may(called, "GetObject", f"{CONTROL}/code/marketing/daily/clean.py")
    assert not may(called, "GetObject", context_of("finance.daily.clean"))


@pytest.mark.parametrize(
    "prefix", ["", "/", "raw", "raw/*/", "raw/../other/", "/raw/", "ra?/", "${LakeBucket}/", "raw//"]
)
def test_a_folder_that_names_more_is_refused(prefix: str) -> None:
    with pytest.raises(job_role.BadRole, match="expected a folder of the lake"):
        job_role.template("demo", [prefix])


@pytest.mark.parametrize("namespace", ["", "*", "Demo", "demo.flights", "a/b"])
def test_a_namespace_with_a_wildcard_is_refused(namespace: str) -> None:
    with pytest.raises(job_role.BadRole, match="expected the name of a namespace"):
        job_role.template(namespace)
    with pytest.raises(job_role.BadRole, match="expected the name of a namespace"):
        job_role.template("demo", callers=[namespace])


def test_only_emr_of_the_same_account_takes_the_role() -> None:
    [trust] = job_role.template("demo")["Resources"]["JobRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "emr-serverless.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_the_longest_role_fits_into_a_policy_of_iam(tmp_path: Path) -> None:
    longest = ["/".join("x" * 20 for _ in range(3)) + f"{number:02}/" for number in range(16)]
    made = job_role.template("n" * 40, longest, ["m" * 40, "o" * 40])
    written = tmp_path / "role.yaml"
    written.write_text(yaml_tags.dump(made))
    cfn_lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([cfn_lint, written], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)
    [inline] = Resolver(made, {}, LakeBucket="l" * 63, ControlBucket="c" * 63)(
        made["Resources"]["JobRole"]["Properties"]["Policies"]
    )
    assert len(str(inline["PolicyDocument"]).replace(" ", "")) < 10_240
    with pytest.raises(job_role.BadRole, match="expected at most 20 folders"):
        job_role.template("demo", [f"raw/{number}/" for number in range(30)])


def test_the_command_prints_the_template(capsys: pytest.CaptureFixture[str]) -> None:
    assert job_role.main(["demo", "--data", "raw/demo/", "--caller", "sales"]) == 0
    assert yaml_tags.load(capsys.readouterr().out) == job_role.template("demo", ["raw/demo/"], ["sales"])
    assert job_role.main(["demo", "--data", "history/"]) == 1
    assert capsys.readouterr().err.startswith("job role: expected a folder without history")


def test_a_role_uses_the_key_of_the_buckets_through_s3_alone() -> None:
    key = "arn:aws:kms:eu-west-1:123456789012:key/0000"
    role, without = policy("demo", key=key), policy("demo")
    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        use = Need(action, key, (("kms:ViaService", "s3.eu-west-1.amazonaws.com"),))
        assert role.allows(use)
        assert not without.allows(use)
        assert not role.allows(Need(action, key, (("kms:ViaService", "sqs.eu-west-1.amazonaws.com"),)))
        assert not role.allows(Need(action, key))


def test_o10_the_page_of_engines_gives_the_same_contexts() -> None:
    docs = Path(__file__).parents[2] / "docs"
    [text] = re.findall(r"```json\n(\[.*?\n\])\n```", (docs / "engines.md").read_text(), re.DOTALL)
    written = text.replace("<control bucket>", "control").replace("<namespace>", "demo")
    folders = tuple(f"{CONTROL}/{each}/" for each in ("context", "manifests", "results"))
    ours = [(each.action, each.resource) for each in policy("demo").grants() if each.resource.startswith(folders)]
    given = [(each.action, each.resource) for each in Policy(json.loads(written)).grants()]
    assert sorted(given) == sorted(ours)
    pages = [docs / "targets.md", docs / "engines.md", *(docs / "engines").glob("*.md")]
    assert [each.name for each in pages if re.search(r"\bon\s+`?(context|results)/\*", each.read_text())] == []
