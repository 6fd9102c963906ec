"""Allow-lists: which patterns they hold, and what fits them (O10)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.access.allowed import (
    OF_ACCOUNT,
    RULES,
    Allowed,
    Installation,
    Kind,
    Named,
    check,
    host_of,
    own_arn,
)
from chalicelib.core.access.spark_keys import OF_FILES
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.targets import registry
from tests.core.access.test_queue_urls import NO_URLS_OF_QUEUES
from tests.core.access.test_spark_keys import DANGEROUS, TUNING

ACCOUNT, OTHER = "123456789012", "210987654321"


def refused(named: Named, **lists: list[str]) -> bool:
    try:
        check([named], Allowed.model_validate(lists) if lists else None, "demo", Installation(ACCOUNT))
    except SluiceError as error:
        assert error.code == "invalid"
        assert error.field == named.field
        assert error.hint is not None
        assert "sluice allowed demo" in error.hint
        return True
    return False


def arn(service: str, resource: str, account: str = ACCOUNT, region: str = "eu-west-1") -> str:
    return f"arn:aws:{service}:{region}:{account}:{resource}"


@pytest.mark.parametrize("kind", RULES)
def test_the_example_of_each_kind_is_a_pattern(kind: Kind) -> None:
    assert Allowed.model_validate({kind: [RULES[kind].example]}).of(kind) == (RULES[kind].example,)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("queues", "*"),
        ("queues", "arn:aws:sqs:eu-west-1:*:team-a"),
        ("queues", "arn:*:sqs:*:*:sluice-target-*"),
        ("queues", f"arn:aws:*:eu-west-1:{ACCOUNT}:team-a"),
        ("queues", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:*"),
        ("queues", f"arn:aws:sns:eu-west-1:{ACCOUNT}:team-a"),
        ("queues", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:team-[ab]"),
        ("functions", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:*"),
        ("functions", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:*"),
        ("execution_roles", "arn:aws:iam::*:role/etl"),
        ("execution_roles", f"arn:aws:iam::{ACCOUNT}:role/*"),
        ("entry_points", "s3://team-a"),
        ("entry_points", "s3://*/jobs/"),
        ("entry_points", "s3://team-a/jobs/*"),
        ("buckets", "lake/raw/"),
        ("hosts", "*"),
        ("hosts", "*.com"),
        ("hosts", "https://hooks.example.com"),
        ("hosts", "Hooks.example.com"),
        ("secrets", f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:*"),
        ("secrets", f"arn:aws:ssm:eu-west-1:{ACCOUNT}:parameter/*"),
        ("spark", "*"),
        ("spark", "hive.metastore.uris"),
        ("metrics", "*"),
        ("alarms", "*"),
        ("applications", "00f1*"),
        ("engines", f"arn:aws:ecs:eu-west-1:{ACCOUNT}:*"),
        ("engines", f"arn:aws:ecs:eu-west-1:{ACCOUNT}:cluster/*"),
        ("engines", "arn:aws:ecs:eu-west-1:*:cluster/team-a-*"),
        ("engines", f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/team-a-*"),
        ("actions", "*"),
        ("actions", "*:Publish"),
        ("actions", "sns:Pub*lish"),
    ],
)
def test_a_pattern_without_account_or_name_is_refused(kind: Kind, pattern: str) -> None:
    with pytest.raises(ValidationError) as failure:
        Allowed.model_validate({kind: [pattern]})
    error = from_validation(failure.value, Allowed)
    assert error.field is not None
    assert error.field.startswith(kind)
    assert RULES[kind].example in error.message


@pytest.mark.parametrize(
    ("kind", "pattern", "fitting", "others"),
    [
        (
            "queues",
            arn("sqs", "team-a-*"),
            [arn("sqs", "team-a-in"), arn("sqs", "team-a-in.fifo")],
            [arn("sqs", "team-b"), arn("sqs", "team-a-in", OTHER), arn("sqs", "team-a-in", region="eu-west-2")],
        ),
        (
            "queues",
            f"arn:aws:sqs:*:{ACCOUNT}:team-a",
            [arn("sqs", "team-a", region="us-east-2")],
            [arn("sqs", "team-a-2")],
        ),
        (
            "functions",
            arn("lambda", "function:team-a"),
            [arn("lambda", "function:team-a"), arn("lambda", "function:team-a:PROD")],
            [arn("lambda", "function:team-ab"), arn("lambda", "function:b:team-a")],
        ),
        (
            "state_machines",
            arn("states", "stateMachine:team-a-*"),
            [arn("states", "stateMachine:team-a-load:3")],
            [arn("states", "stateMachine:load:team-a-x"), arn("states", "execution:team-a-load:3")],
        ),
        (
            "engines",
            arn("ecs", "task-definition/team-a-*"),
            [arn("ecs", "task-definition/team-a-load"), own_arn("ecs", "task-definition/team-a-load")],
            [arn("ecs", "cluster/team-a-load"), arn("batch", "task-definition/team-a-load")],
        ),
        ("actions", "sns:Publish", ["sns:Publish"], ["sns:PublishBatch", "sqs:Publish"]),
        ("actions", "glue:Start*", ["glue:StartCrawler"], ["glue:StopCrawler", "athena:StartQueryExecution"]),
        ("buses", arn("events", "event-bus/team-a"), [own_arn("events", "event-bus/team-a")], []),
        ("buses", arn("events", "event-bus/team-a", OTHER), [], [own_arn("events", "event-bus/team-a")]),
        ("hosts", "hooks.example.com", ["hooks.example.com"], ["example.com", "x.hooks.example.com"]),
        ("hosts", "*.example.com", ["hooks.example.com", "a.b.example.com"], ["example.com", "badexample.com"]),
        (
            "entry_points",
            "s3://code/team-a/",
            ["s3://code/team-a/job.py"],
            [
                "s3://code/team-ab/job.py",
                "s3://code/team-a/../team-b/job.py",
                "s3://code/team-a/{x,y}.py",
                "s3://code/team-a/*.py",
                "s3://other/team-a/job.py",
            ],
        ),
        ("entry_points", "s3://code/job.py", ["s3://code/job.py"], ["s3://code/job.pyc", "s3://code/job.py/x"]),
        (
            "buckets",
            "s3://lake/raw/a/",
            ["s3://lake/raw/a/", "s3://lake/raw/a/b/"],
            ["s3://lake/raw/", "s3://lake/raw/ab/"],
        ),
        (
            "spark",
            "spark.sql.*",
            ["spark.sql.shuffle.partitions"],
            ["spark.executor.memoryOverhead", "spark.sql.extensions"],
        ),
        ("spark", "spark.jars.packages", ["spark.jars.packages"], ["spark.jars.repositories"]),
        ("spark", "spark.sql.catalog.*", [], ["spark.sql.catalog.glue"]),
        ("metrics", "AWS/SQS/*", ["AWS/SQS/NumberOfMessagesSent"], ["AWS/EC2/CPUUtilization"]),
        ("alarms", "team-a *", ["team-a late"], ["team-b late"]),
    ],
)
def test_a_value_fits_exactly_its_patterns(kind: Kind, pattern: str, fitting: list[str], others: list[str]) -> None:
    assert [value for value in fitting if refused(Named(kind, value, "x"), **{kind: [pattern]})] == []
    assert [value for value in others if not refused(Named(kind, value, "x"), **{kind: [pattern]})] == []


def test_an_empty_list_allows_nothing_and_none_allows_all() -> None:
    own = Named("queues", arn("sqs", "any"), "target.queue_url")
    assert refused(own, queues=[])
    assert not refused(own)
    assert not refused(own, topics=[])


def test_other_accounts_need_a_list_that_names_them() -> None:
    foreign = Named("queues", arn("sqs", "theirs", OTHER), "target.queue_url")
    assert refused(foreign)
    assert refused(foreign, topics=[])
    assert not refused(foreign, queues=[arn("sqs", "theirs", OTHER)])


def test_a_secret_lies_under_its_namespace() -> None:
    for own in (
        own_arn("ssm", "parameter/sluice-target/demo/hook"),
        arn("ssm", "parameter/sluice-target/demo/a/b"),
        arn("secretsmanager", "secret:sluice-target-demo/hook-AbCdEf"),
    ):
        assert not refused(Named("secrets", own, "secret"))
    for other in (
        own_arn("ssm", "parameter/sluice-target/hook"),
        own_arn("ssm", "parameter/sluice-target/demo2/hook"),
        own_arn("ssm", "parameter/sluice-target/other/demo/hook"),
        arn("secretsmanager", "secret:sluice-target-demo-hook"),
        arn("secretsmanager", "secret:sluice-target-demo/hook", OTHER),
    ):
        assert refused(Named("secrets", other, "secret"))
    assert not refused(
        Named("secrets", own_arn("ssm", "parameter/shared/hook"), "secret"),
        secrets=[arn("ssm", "parameter/shared/*")],
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("queues", url) for url in NO_URLS_OF_QUEUES),
        ("topics", "sluice-target-orders"),
        ("topics", f"arn:aws:sns:eu-west-1:{ACCOUNT}"),
        ("functions", "sluice-target-orders"),
        ("functions", f"{ACCOUNT}:function:sluice-target-orders"),
        ("functions", "function:sluice-target-orders:PROD"),
        ("buses", "event-bus/sluice-target-orders"),
        ("state_machines", "stateMachine:sluice-target-orders"),
        ("secrets", "/sluice-target/demo/hook"),
    ],
)
def test_what_is_not_surely_of_the_account_is_refused(kind: Kind, value: str) -> None:
    assert kind in OF_ACCOUNT
    assert refused(Named(kind, value, "x"))
    assert refused(Named(kind, value, "x"), **{kind: [RULES[kind].example]})


def test_the_host_of_a_url_is_compared_in_lower_case() -> None:
    assert host_of("https://Hooks.Example.com.:8443/x?y") == "hooks.example.com"


EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py", "arguments": [], "py_files": [], "spark": {}}


def named(**changed: Any) -> list[Named]:
    stored = {**EMR, "application_id": "00f1", "execution_role_arn": f"arn:aws:iam::{ACCOUNT}:role/etl", **changed}
    return list(registry.of_type("emr_serverless").named(stored))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"spark": {"spark.x": "1 --jars s3://evil/x.jar"}}, "spark.spark.x"),
        ({"spark": {"spark.x": "1\t--conf"}}, "spark.spark.x"),
        ({"spark": {"spark.x": "1\n--conf"}}, "spark.spark.x"),
        ({"spark": {"spark.x": "'1"}}, "spark.spark.x"),
        ({"spark": {"spark.x --jars": "1"}}, "spark.spark.x --jars"),
        ({"spark": {"spark.x=1": "1"}}, "spark.spark.x=1"),
        ({"spark": {"--jars": "1"}}, "spark.--jars"),
        ({"py_files": ["s3://code/a.py --jars x"]}, "py_files.0"),
        ({"py_files": ["s3://code/a.py", "s3://code/b.py,s3://evil/c.py"]}, "py_files.1"),
        ({"py_files": ["local.py"]}, "py_files.0"),
    ],
)
def test_a_spark_value_never_becomes_a_parameter(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(SluiceError) as failure:
        named(**changed)
    assert (failure.value.code, failure.value.field) == ("invalid", field)


def test_files_of_code_in_spark_properties_are_entry_points() -> None:
    found = named(
        spark={
            "spark.jars": "s3://a/x.jar,s3://b/y.jar",
            "spark.archives": "s3://c/z.tgz#env",
            "spark.files": "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar,/usr/share/aws/../x.jar,/etc/x.jar",
            "spark.executor.cores": "4",
        },
        py_files=["s3://d/lib.py"],
    )
    code = [each.value for each in found if each.kind == "entry_points"]
    elsewhere = ["/usr/share/aws/../x.jar", "/etc/x.jar"]
    assert code == ["s3://code/job.py", "s3://d/lib.py", "s3://a/x.jar", "s3://b/y.jar", "s3://c/z.tgz", *elsewhere]
    assert [each.value for each in found if each.kind == "spark"] == ["spark.jars", "spark.archives", "spark.files"]


def test_limited_code_limits_properties_to_harmless_ones() -> None:
    for key in DANGEROUS:
        assert refused(Named("spark", key, "x"), entry_points=["s3://code/"]), key
        assert refused(Named("spark", key, "x"), spark=["spark.*"]), key
        assert not refused(Named("spark", key, "x"), spark=[key], entry_points=["s3://code/"]), key
        assert not refused(Named("spark", key, "x")), key
    for key in (*TUNING, *OF_FILES):
        assert not refused(Named("spark", key, "x"), entry_points=["s3://code/"]), key
    for key in TUNING:
        assert not refused(Named("spark", key, "x"), spark=["spark.*"]), key
