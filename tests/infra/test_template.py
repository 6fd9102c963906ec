"""Facts of the deployed template that a reviewer would otherwise check by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samtranslator.translator.transform import transform

from chalicelib import handlers
from chalicelib.core.states import RUN_MOVES, is_terminal
from infra.template import with_code_at

from .conftest import of_type
from .resolve import Resolver

KEYS_ONLY = {"ProjectionType": "KEYS_ONLY"}
TLS_ONLY = {"Bool": {"aws:SecureTransport": "false"}}


def test_cfn_lint_finds_nothing(packaged: Path) -> None:
    # Its exit code counts warnings as well.
    cfn_lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([cfn_lint, packaged / "template.yaml"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_template_fits_cloudformation(packaged: Path, template: dict[str, Any]) -> None:
    # Limits of a template that is read from S3: 1 MB, 500 resources; SAM adds a permission per event.
    assert (packaged / "template.yaml").stat().st_size < 1_000_000
    assert len(template["Resources"]) < 300


# Only the API checks signers and quotas, and writes audit records.
OF_LINEAGE = {
    f"SLUICE_LINEAGE_{name}" for name in ("ENDPOINT", "SECRET", "QUEUE_ARN", "FOLDER", "NAMESPACES", "LETTERS_URL")
}
OF_THE_API = {
    *("SLUICE_WATCHED_BUCKETS", "SLUICE_ADMINISTRATORS", "SLUICE_CALLER_ACCOUNTS"),
    *("SLUICE_AUDIT_DAYS", "SLUICE_AUDIT_BUCKET", "SLUICE_PERSONAL_ROLES"),
    *("SLUICE_QUOTA_SCHEDULES", "SLUICE_QUOTA_FIRES_PER_SECOND", "SLUICE_QUOTA_DOCUMENTS"),
    "SLUICE_QUOTA_REQUESTS_PER_SECOND",
    "SLUICE_QUOTA_WAITING_JOBS",
}


@pytest.mark.parametrize(
    ("table", "indexes"),
    [
        ("CatalogTable", {"wake": ("wake_shard", "wake_at")}),
        ("JobsTable", {"wake": ("wake_shard", "wake_at")}),
        (
            "RunsTable",
            {
                "wake": ("wake_shard", "wake_at"),
                "by_workflow": ("wf_key", "at"),
                "by_schedule": ("schedule_key", "at"),
                "by_day": ("day_key", "at"),
            },
        ),
    ],
)
def test_every_table_has_its_keys_indexes_and_protection(
    resources: dict[str, Any], table: str, indexes: dict[str, tuple[str, str]]
) -> None:
    properties = resources[table]["Properties"]
    assert _keys(properties) == ("pk", "sk")
    assert {i["IndexName"]: _keys(i) for i in properties["GlobalSecondaryIndexes"]} == indexes
    assert all(i["Projection"] == KEYS_ONLY for i in properties["GlobalSecondaryIndexes"])
    assert {a["AttributeType"] for a in properties["AttributeDefinitions"]} == {"S"}
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    # The key that DynamoDB owns is free. `true` without a key would be the AWS managed key, whose requests are billed.
    own, free = properties["SSESpecification"]["Fn::If"][1:]
    assert (own["KMSMasterKeyId"], free) == ({"Ref": "KmsKeyArn"}, {"SSEEnabled": False})
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}


def test_events_of_a_job_are_readable_strongly(resources: dict[str, Any]) -> None:
    (index,) = resources["JobsTable"]["Properties"]["LocalSecondaryIndexes"]
    assert (index["IndexName"], *_keys(index)) == ("events", "pk", "event_job")
    assert index["Projection"] == {"ProjectionType": "ALL"}


def test_data_is_kept_unless_the_stage_is_temporary(template: dict[str, Any], resources: dict[str, Any]) -> None:
    assert template["Parameters"]["DataRetention"]["Default"] == "Retain"
    for name in ("CatalogTable", "JobsTable", "RunsTable", "LakeBucket", "ControlBucket"):
        assert resources[name]["DeletionPolicy"] == resources[name]["UpdateReplacePolicy"] == {"Ref": "DataRetention"}


@pytest.mark.parametrize(
    ("queue", "dead_letters", "tries", "handler", "batch"),
    [
        ("ObjectsQueue", "ObjectsDeadLetters", 85, "Objects", 10),
        ("HintsQueue", "HintsDeadLetters", 16, "Check", 10),
        ("BurstHintsQueue", "HintsDeadLetters", 16, "Burst", {"Fn::If": ["ApiIsEmulated", 10, 1]}),
        ("CustomQueue", "CustomDeadLetters", 85, "Custom", 10),
    ],
)
def test_every_queue_has_a_dead_letter_queue_and_a_handler(
    resources: dict[str, Any], queue: str, dead_letters: str, tries: int, handler: str, batch: Any
) -> None:
    properties = resources[queue]["Properties"]
    target = {"Fn::GetAtt": [dead_letters, "Arn"]}
    assert properties["RedrivePolicy"] == {"deadLetterTargetArn": target, "maxReceiveCount": tries}
    timeout = resources[handler]["Properties"]["Timeout"]
    _, local, in_aws = timeout["Fn::If"] if isinstance(timeout, dict) else ("", timeout, timeout)
    assert properties["VisibilityTimeout"] >= max(6 * in_aws, local)
    events = resources[handler]["Properties"]["Events"].values()
    (event,) = (event for event in events if event["Properties"]["Queue"] == {"Fn::GetAtt": [queue, "Arn"]})
    assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert (event["Properties"]["BatchSize"], event["Properties"]["MaximumBatchingWindowInSeconds"]) == (batch, 0)


def test_every_queue_is_encrypted_has_tls_and_dead_ones_an_alarm(resources: dict[str, Any]) -> None:
    queues = dict(of_type(resources, "AWS::SQS::Queue"))
    assert all(q["SqsManagedSseEnabled"] == {"Fn::If": ["KeyEncrypts", False, True]} for q in queues.values())
    guarded = {p["Queues"][0]["Ref"]: json.dumps(p) for _, p in of_type(resources, "AWS::SQS::QueuePolicy")}
    assert set(guarded) == set(queues)
    assert all(json.dumps(TLS_ONLY) in policy for policy in guarded.values())
    watched = {json.dumps(p.get("Dimensions")) for _, p in of_type(resources, "AWS::CloudWatch::Alarm")}
    for dead in (name for name in queues if name.endswith("DeadLetters")):
        assert any(f'"{dead}"' in dimension for dimension in watched)


def test_only_the_lake_of_this_account_may_send_objects(resources: dict[str, Any]) -> None:
    statement = resources["ObjectsQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"][0]
    assert (statement["Principal"], statement["Action"]) == ({"Service": "s3.amazonaws.com"}, "sqs:SendMessage")
    assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    # The same expression as the bucket's name: a name read from the bucket would be a circular reference.
    bucket = resources["LakeBucket"]["Properties"]["BucketName"]["Fn::If"]
    allowed = statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::If"]
    assert allowed[1]["Fn::Sub"] == "arn:${AWS::Partition}:s3:::" + bucket[1]["Fn::Sub"]
    assert allowed[2]["Fn::Sub"] == "arn:${AWS::Partition}:s3:::${LakeBucketName}"
    assert resources["LakeBucket"]["DependsOn"] == "ObjectsQueuePolicy"


def test_buckets_are_private_encrypted_and_take_tls_only(resources: dict[str, Any]) -> None:
    buckets = dict(of_type(resources, "AWS::S3::Bucket"))
    policies = {p["Bucket"]["Ref"]: json.dumps(p) for _, p in of_type(resources, "AWS::S3::BucketPolicy")}
    assert set(buckets) == set(policies) == {"LakeBucket", "ControlBucket", "AuditLog"}
    for name, properties in buckets.items():
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
        assert "ServerSideEncryptionConfiguration" in properties["BucketEncryption"]
        assert json.dumps(TLS_ONLY) in policies[name]


def test_new_objects_of_the_lake_go_to_the_objects_queue(resources: dict[str, Any]) -> None:
    assert resources["LakeBucket"]["Properties"]["NotificationConfiguration"] == {
        "QueueConfigurations": [{"Event": "s3:ObjectCreated:*", "Queue": {"Fn::GetAtt": ["ObjectsQueue", "Arn"]}}]
    }


def test_objects_that_runs_point_to_outlive_their_rows(resources: dict[str, Any]) -> None:
    rules = resources["ControlBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {r["Prefix"]: r["ExpirationInDays"] for r in rules if "ExpirationInDays" in r} == {
        "context/": 200,
        "manifests/": 200,
        "logs/": 200,
        "results/": 200,
        "uploads/": 7,  # a deployment has read its upload long before
    }


def test_scripts_have_versions_for_a_while_all_else_for_a_day(resources: dict[str, Any]) -> None:
    """Only a whole bucket has versions, so each folder says how long: nothing grows without an end."""
    bucket = resources["ControlBucket"]["Properties"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = {rule["Prefix"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "Prefix" in rule}
    days = {prefix: rule["NoncurrentVersionExpiration"]["NoncurrentDays"] for prefix, rule in rules.items()}
    others = ("context/", "manifests/", "uploads/", "logs/", "results/", "deployments/", "data/")
    assert days == {"code/": 90, **dict.fromkeys(others, 1)}
    assert rules["code/"]["ExpiredObjectDeleteMarker"] is True
    assert "ExpirationInDays" not in rules["code/"]


def test_every_folder_that_sluice_writes_drops_versions(resources: dict[str, Any]) -> None:
    rules = resources["ControlBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    known = {rule["Prefix"] for rule in rules if "NoncurrentVersionExpiration" in rule}
    policies = json.dumps([p for name, p in resources.items() if name.endswith("Role")])
    written = set(re.findall(r"\$\{ControlBucket\.Arn\}/(\w+/)", policies))
    assert written >= {"context/", "uploads/"}
    assert written <= known


def test_tls_is_required_unless_the_api_is_an_emulator(template: dict[str, Any]) -> None:
    assert template["Conditions"]["TransportIsTls"] == {"Fn::Equals": [{"Ref": "ApiBaseUrl"}, ""]}
    assert template["Parameters"]["ApiBaseUrl"]["Default"] == ""


@pytest.mark.parametrize(
    ("function", "memory", "timeout"),
    [
        ("APIHandler", 1769, 29),
        ("Tick", 1024, 60),
        ("Objects", 512, 60),
        ("Check", 512, 120),
        ("Burst", 1769, {"Fn::If": ["ApiIsEmulated", 240, 120]}),
        ("RunState", 512, 60),
        ("Custom", 512, 60),
        ("Lake", 512, 120),
        ("Lineage", 512, 120),
    ],
)
def test_every_lambda_has_its_memory_and_timeout(
    template: dict[str, Any], function: str, memory: int, timeout: Any
) -> None:
    properties = template["Resources"][function]["Properties"]
    condition, local, parameter = properties["MemorySize"]["Fn::If"]
    assert (condition, local, properties["Timeout"]) == ("ApiIsEmulated", memory, timeout)
    assert template["Parameters"][parameter["Ref"]]["Default"] == memory
    assert (properties["Runtime"], properties["Tracing"]) == ("python3.11", {"Ref": "Tracing"})
    role = "CheckRole" if function == "Burst" else f"{function}Role"
    assert properties["Role"] == {"Fn::GetAtt": [role, "Arn"]}
    own = {
        "APIHandler": OF_THE_API,
        "Check": {"SLUICE_WATCHED_BUCKETS"},  # for uploaded documents
        "Burst": {"SLUICE_WATCHED_BUCKETS"},
        "Lake": {"SLUICE_AUDIT_BUCKET"},
        "Lineage": OF_LINEAGE,
        "Tick": {"SLUICE_KEEP_WARM"},
    }.get(function, set())
    answer = properties.get("Environment", {"Variables": {}})["Variables"]
    assert set(answer) == own, "the environment is set for all Lambdas at once, in Globals"


def test_every_lambda_has_its_environment(template: dict[str, Any]) -> None:
    assert set(template["Globals"]["Function"]["Environment"]["Variables"]) == {
        "SLUICE_STAGE",
        "SLUICE_LINEAGE",
        "SLUICE_CATALOG_TABLE",
        "SLUICE_JOBS_TABLE",
        "SLUICE_RUNS_TABLE",
        "SLUICE_HINTS_QUEUE_URL",
        "SLUICE_BURST_HINTS_QUEUE_URL",
        "SLUICE_LAKE_BUCKET",
        "SLUICE_CONTROL_BUCKET",
        "SLUICE_EMR_APPLICATION_ID",
        "SLUICE_EMR_JOB_ROLE_ARN",
        "SLUICE_ACCOUNT",
        "SLUICE_TARGET_ROLE_ARNS",
        "SLUICE_EMR_APPLICATION_IDS",
        "SLUICE_EMR_ROLE_ARNS",
        "SLUICE_EMR_RUN_LIMITS",
        "SLUICE_START_RATE_PER_SECOND",
        "SLUICE_START_BURST",
        "SLUICE_WAKE_SHARDS",
        "SLUICE_HISTORY_SHARDS",
        "SLUICE_UPDATE_SCHEDULES",
        "SLUICE_HISTORY_DAYS",
        "SLUICE_AUTHORIZATION",
        "SLUICE_WORKER_WAIT_SECONDS",
        "SLUICE_WORKER_RETRY_SECONDS",
        "SLUICE_HTTP_ALLOW_PRIVATE",
        "POWERTOOLS_SERVICE_NAME",
        "PYDANTIC_DISABLE_PLUGINS",
        "AWS_LAMBDA_EXEC_WRAPPER",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_SERVICE_NAME",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_EMR_SERVERLESS",
    }


def test_only_the_handler_of_the_api_serves_routes(resources: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    serving = set()
    for name, function in of_type(resources, "AWS::Serverless::Function"):
        monkeypatch.setenv("_HANDLER", function["Handler"])
        serving |= {name} if handlers.serves_routes() else set()
    assert serving == {"APIHandler"}


@pytest.mark.parametrize(
    ("variable", "condition", "parameter"),
    [
        ("AWS_ENDPOINT_URL", "ApiIsEmulated", "ApiBaseUrl"),
        ("AWS_ENDPOINT_URL_EMR_SERVERLESS", "EmrIsEmulated", "EmrEndpointUrl"),
    ],
)
def test_emulator_endpoints_are_unset_in_production(
    template: dict[str, Any], variable: str, condition: str, parameter: str
) -> None:
    value = template["Globals"]["Function"]["Environment"]["Variables"][variable]
    assert value == {"Fn::If": [condition, {"Ref": parameter}, {"Ref": "AWS::NoValue"}]}
    assert template["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}
    assert template["Parameters"][parameter]["Default"] == ""


def test_o6_internal_callbacks_are_allowed_only_on_an_emulator(template: dict[str, Any]) -> None:
    value = template["Globals"]["Function"]["Environment"]["Variables"]["SLUICE_HTTP_ALLOW_PRIVATE"]
    assert value == {"Fn::If": ["ApiIsEmulated", "true", "false"]}


def test_emr_is_created_unless_an_application_is_given(template: dict[str, Any], resources: dict[str, Any]) -> None:
    assert template["Conditions"]["CreateEmr"] == {"Fn::Equals": [{"Ref": "EmrApplicationId"}, ""]}
    assert resources["EmrApplication"]["Condition"] == resources["EmrJobRole"]["Condition"] == "CreateEmr"
    properties = resources["EmrApplication"]["Properties"]
    assert properties["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 15}
    assert properties["MaximumCapacity"]["Cpu"] == {"Ref": "EmrMaximumVcpu"}


def test_the_tick_is_scheduled_every_minute(resources: dict[str, Any]) -> None:
    (event,) = resources["Tick"]["Properties"]["Events"].values()
    assert (event["Type"], event["Properties"]["Schedule"]) == ("Schedule", "rate(1 minute)")


def test_an_event_that_cannot_be_applied_is_kept(resources: dict[str, Any]) -> None:
    properties = resources["RunState"]["Properties"]
    kept = {"Fn::GetAtt": ["RunStateDeadLetters", "Arn"]}
    assert properties["EventInvokeConfig"]["DestinationConfig"]["OnFailure"] == {"Type": "SQS", "Destination": kept}
    events = properties["Events"].values()
    assert [each["Properties"]["DeadLetterConfig"] for each in events] == [{"Arn": kept}] * len(events)


def test_t11_custom_events_name_their_namespace_in_the_source(resources: dict[str, Any]) -> None:
    rule = resources["CustomEventsRule"]["Properties"]
    assert rule["EventPattern"] == {"source": [{"prefix": "sluice/"}]}
    (target,) = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": ["CustomQueue", "Arn"]}
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["CustomDeadLetters", "Arn"]}}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}


def test_h3_the_lake_lambda_gets_few_large_batches_of_ended_rows(
    resources: dict[str, Any],
) -> None:
    assert resources["RunsTable"]["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    (event,) = resources["Lake"]["Properties"]["Events"].values()
    answer = event["Properties"]
    assert (event["Type"], answer["Stream"]) == ("DynamoDB", {"Fn::GetAtt": ["RunsTable", "StreamArn"]})
    assert (answer["BatchSize"], answer["MaximumBatchingWindowInSeconds"]) == (10_000, 300)
    assert (answer["StartingPosition"], answer["FunctionResponseTypes"]) == (
        "TRIM_HORIZON",
        ["ReportBatchItemFailures"],
    )
    assert answer["BisectBatchOnFunctionError"] is True
    kept = {"Type": "SQS", "Destination": {"Fn::GetAtt": ["LakeDeadLetters", "Arn"]}}
    assert answer["DestinationConfig"]["OnFailure"] == kept
    ended, records, audited = (json.loads(each["Pattern"]) for each in answer["FilterCriteria"]["Filters"])
    assert ended["dynamodb"]["NewImage"]["state"]["S"] == [state for state in RUN_MOVES if is_terminal(state)]
    assert records["dynamodb"]["Keys"]["sk"]["S"] == ["RECORD"]
    assert audited == {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "AUDIT#"}]}}}}


def test_h6_without_a_receiver_nothing_of_lineage_exists(template: dict[str, Any], resources: dict[str, Any]) -> None:
    own = {name: each for name, each in resources.items() if name.startswith("Lineage")}
    assert {"Lineage", "LineageRole", "LineageLog", "LineageDeadLetters", "LineageIteratorAgeAlarm"} < set(own)
    assert {each["Condition"] for each in own.values()} == {"LineageIsSent", "LineageIsSentOnAws"}
    given = {"LineageFolder": "lake/lineage/"}
    assert not Resolver(template, {}).holds("LineageIsSent")
    assert Resolver(template, {}, **given).holds("LineageIsSent")
    ports = template["Globals"]["Function"]["Environment"]["Variables"]["SLUICE_LINEAGE"]
    assert (Resolver(template, {})(ports), Resolver(template, {}, **given)(ports)) == ("", "sluice")


def test_h6_lineage_reads_each_change_of_a_run_for_a_day(resources: dict[str, Any]) -> None:
    (event,) = resources["Lineage"]["Properties"]["Events"].values()
    answer = event["Properties"]
    assert (answer["Stream"], answer["StartingPosition"]) == ({"Fn::GetAtt": ["RunsTable", "StreamArn"]}, "LATEST")
    assert (answer["BatchSize"], answer["MaximumBatchingWindowInSeconds"]) == (100, 10)
    assert answer["MaximumRecordAgeInSeconds"] == 86_400
    runs, records = (json.loads(each["Pattern"]) for each in answer["FilterCriteria"]["Filters"])
    assert runs["dynamodb"]["Keys"]["sk"]["S"] == [{"prefix": "A#"}]
    assert records["dynamodb"]["Keys"]["sk"]["S"] == ["RECORD"]


def test_the_outputs_name_the_api_the_buckets_and_the_tables(template: dict[str, Any]) -> None:
    assert {"ApiUrl", "LakeBucket", "ControlBucket", "CatalogTable", "JobsTable", "RunsTable"} < set(
        template["Outputs"]
    )


def test_o7_the_translated_template_has_one_stage(template: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """SAM adds a public stage named `Stage` to an API without a version, which has no access log, traces or alarms."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    deployed = with_code_at(template, "bucket", "key")  # a copy
    for resource in deployed["Resources"].values():  # AWS::LanguageExtensions resolves them before SAM
        resource.update({name: "Retain" for name in ("DeletionPolicy", "UpdateReplacePolicy") if name in resource})
    translated = transform(deployed, {}, SimpleNamespace(load=dict))["Resources"]
    [stage] = [properties for _, properties in of_type(translated, "AWS::ApiGateway::Stage")]
    assert stage["StageName"] == "api"
    assert "AccessLogSetting" in stage
    [deployment] = [properties for _, properties in of_type(translated, "AWS::ApiGateway::Deployment")]
    assert "StageName" not in deployment


def test_chalice_authorizers_survive_the_merge(resources: dict[str, Any]) -> None:
    definition = resources["RestAPI"]["Properties"]["DefinitionBody"]
    secured = [m for path in definition["paths"].values() for m in path.values() if "security" in m]
    assert bool(secured) == ("securityDefinitions" in definition)
    assert resources["RestAPI"]["Properties"]["StageName"] == "api"


def _keys(properties: dict[str, Any]) -> tuple[str, str]:
    by_type = {k["KeyType"]: k["AttributeName"] for k in properties["KeySchema"]}
    return by_type["HASH"], by_type["RANGE"]


def test_recursion_detection_of_lambda_allows_hints(resources: dict[str, Any]) -> None:
    """Lambda stops a chain of Lambdas and queues after sixteen hops, unless its functions allow it."""
    invoked_by_a_queue = {
        name
        for name, properties in of_type(resources, "AWS::Serverless::Function")
        if any(event["Type"] == "SQS" for event in properties.get("Events", {}).values())
    }
    # A chain to `custom` goes through EventBridge, where Lambda counts no hops.
    invoked_by_a_queue -= {"Custom"}
    assert invoked_by_a_queue == {"Check", "Burst", "Objects"}
    assert all(resources[name]["Properties"]["RecursiveLoop"] == "Allow" for name in invoked_by_a_queue)
    for name in invoked_by_a_queue:
        [alarm] = alarms_of(resources, name, "RecursiveInvocationsDropped")
        assert (alarm["Threshold"], alarm["Statistic"]) == (0, "Sum")


def test_a_tick_that_is_never_invoked_raises_an_alarm(resources: dict[str, Any]) -> None:
    [alarm] = alarms_of(resources, "Tick", "Invocations")
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (60, 3)
    assert alarm["TreatMissingData"] == "breaching", "a function that does not run has no data"


@pytest.mark.parametrize("function", ["Tick", "Check", "Burst"])
def test_a_lambda_that_is_throttled_raises_an_alarm(resources: dict[str, Any], function: str) -> None:
    [alarm] = alarms_of(resources, function, "Throttles")
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)


def alarms_of(resources: dict[str, Any], function: str, metric: str) -> list[dict[str, Any]]:
    """The alarms on a metric of a Lambda."""
    dimension = [{"Name": "FunctionName", "Value": {"Ref": function}}]
    found = [alarm for _, alarm in of_type(resources, "AWS::CloudWatch::Alarm") if alarm.get("MetricName") == metric]
    return [alarm for alarm in found if alarm["Dimensions"] == dimension]


def test_the_audit_bucket_has_object_lock_and_is_kept(template: dict[str, Any], resources: dict[str, Any]) -> None:
    bucket = resources["AuditLog"]
    assert bucket["Condition"] == "CreateAuditBucket"
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    lock = bucket["Properties"]["ObjectLockConfiguration"]["Rule"]["DefaultRetention"]
    assert lock == {"Mode": "COMPLIANCE", "Days": {"Ref": "AuditDays"}}
    assert bucket["Properties"]["ObjectLockEnabled"] is True
    assert bucket["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    assert template["Parameters"]["AuditBucket"]["Default"] == ""
    assert template["Conditions"]["CreateAuditBucket"] == {"Fn::Equals": [{"Ref": "AuditBucket"}, "create"]}


@pytest.mark.parametrize("names", ["", "demo", "demo,shop", "2nd,3-d_e"])
def test_h6_lineage_takes_each_name_of_a_namespace(template: dict[str, Any], names: str) -> None:
    assert re.fullmatch(template["Parameters"]["LineageNamespaces"]["AllowedPattern"], names)


def test_roles_are_enforced_unless_somebody_says_otherwise(template: dict[str, Any]) -> None:
    parameter = template["Parameters"]["Authorization"]
    assert (parameter["Default"], parameter["AllowedValues"]) == ("enforce", ["off", "observe", "enforce"])
    given = template["Globals"]["Function"]["Environment"]["Variables"]
    assert given["SLUICE_AUTHORIZATION"] == {"Ref": "Authorization"}
    assert given["SLUICE_ACCOUNT"] == {"Ref": "AWS::AccountId"}
    own = [
        each["Properties"].get("Environment", {"Variables": {}})
        for each in template["Resources"].values()
        if "Properties" in each
    ]
    assert not any("SLUICE_AUTHORIZATION" in each["Variables"] for each in own)
