"""The workflow of a task of Airflow: its target, retries and timeout, and its arguments that have no counterpart."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from sluice.client import Document
from sluice.convert.airflow_values import Dag, Span, Task, Unknown, When, inside
from sluice.convert.aws_targets import athena_target, batch_target, ecs_target, glue_target, spark_target
from sluice.convert.draft import Draft, span

MAX_RETRIES = 19  # a workflow has at most 20 attempts
# Arguments of a DAG or a task that change what runs or when, and have no counterpart in Sluice.
LOST = {
    "on_failure_callback": ("Sluice runs no code of yours in itself", "add notify with on: [failed] to the DAG"),
    "on_success_callback": ("Sluice runs no code of yours in itself", "add a schedule with a program_status trigger"),
    "on_retry_callback": ("Sluice runs no code of yours in itself", "look at the attempts: sluice runs"),
    "on_execute_callback": ("Sluice runs no code of yours in itself", "call it at the beginning of the job"),
    "on_skipped_callback": ("Sluice runs no code of yours in itself", "add a node with a join rule"),
    "sla_miss_callback": ("Sluice runs no code of yours in itself", "set deadline, and notify on: [missed_end]"),
    "email": ("Sluice sends no mail", "add notify with on: [failed] and an SNS topic to the DAG"),
    "depends_on_past": (
        "a node does not wait for its own last success: after a failure the next run goes on",
        "add to the DAG: concurrency: {max: 1, on_unmet: wait}; and re-run what failed before the next run",
    ),
    "wait_for_downstream": (
        "a node does not wait for the nodes of the last run",
        "add to the DAG: concurrency: {max: 1, on_unmet: wait}",
    ),
    "sla": ("an SLA counts from the end of the interval", "set deadline: {end_within: ...} on the DAG or the workflow"),
    "deadline": ("its reference and callback are code", "set deadline: {end_within: ...} on the DAG, and notify"),
    "pool": (
        "the size of a pool of Airflow is not in the file",
        "add to the nodes: {type: concurrency, group: NAME, max: SLOTS, on_unmet: wait}",
    ),
    "pool_slots": ("a node takes one slot of a group", "lower max of the group, or give the job a group of its own"),
    "priority_weight": ("priorities are from 0 to 9, and weights have no limits", "set priority on the node"),
    "queue": ("Sluice has no executors", "name a pool of workers in the target"),
    "executor": ("Sluice has no executors", "name another target"),
    "executor_config": ("Sluice has no executors", "set resources on the workflow"),
    "run_as_user": ("a target has a role, no user", "set the role of the target"),
    "resources": ("they are those of an executor", "set resources on the workflow"),
    "max_active_tis_per_dagrun": ("a limit counts over all runs", "set a constraint on the node"),
    "fail_fast": ("other branches go on after a failure", "nothing, or cancel the run"),
    "fail_stop": ("other branches go on after a failure", "nothing, or cancel the run"),
    "max_consecutive_failed_dag_runs": ("no number of failures pauses a DAG", "pause it by hand: sluice pause"),
    "access_control": ("Sluice has roles for each namespace", "grant them: docs/permissions.md"),
    "params": ("nodes have properties", "add them to the nodes as properties"),
    "user_defined_macros": ("Sluice fills in no templates", "let the job read its run context"),
    "user_defined_filters": ("Sluice fills in no templates", "let the job read its run context"),
    "__extends__": ("the other file was not read", "write its values into this one, or convert its result"),
}
AS_DEFAULT: dict[str, tuple[Any, ...]] = {"priority_weight": (1,), "pool": ("default_pool",), "pool_slots": (1,)}
# Arguments of a DAG without an effect on what runs, or that are converted.
OF_DAG = frozenset(
    (
        "dag_id default_args description doc_md tags schedule schedule_interval timetable start_date end_date catchup "
        "max_active_runs max_active_tasks concurrency is_paused_upon_creation dagrun_timeout dag_display_name "
        "default_view orientation owner_links auto_register render_template_as_native_obj template_searchpath "
        "template_undefined jinja_environment_kwargs full_filepath email_on_failure email_on_retry timezone "
        "python_version has_serialized_dag disable_bundle_versioning tasks task_groups"
    ).split()
)
# Arguments of every task without an effect on what runs, or that are converted.
OF_TASK = frozenset(
    (
        "task_id dag task_group task_display_name owner doc doc_md doc_json doc_yaml doc_rst inlets outlets "
        "start_date end_date email_on_failure email_on_retry retries retry_delay retry_exponential_backoff "
        "max_retry_delay execution_timeout trigger_rule max_active_tis_per_dag task_concurrency weight_rule "
        "do_xcom_push multiple_outputs map_index_template ignore_first_depends_on_past deferrable "
        "retry_delay_seconds show_return_value_in_logs default_args logger_name ui_color ui_fgcolor"
    ).split()
)
# Arguments of the operators with a target that say how Airflow itself waits, or that are read.
OF_OPERATOR: dict[str, frozenset[str]] = {
    "BashOperator": frozenset(["bash_command"]),
    "EmrServerlessStartJobOperator": frozenset(
        "application_id execution_role_arn job_driver client_request_token enable_application_ui_links "
        "wait_for_completion".split()
    ),
    "SparkSubmitOperator": frozenset(
        "application application_args conf py_files files jars packages executor_cores executor_memory driver_memory "
        "num_executors total_executor_cores conn_id verbose spark_binary deploy_mode name".split()
    ),
    "StepFunctionStartExecutionOperator": frozenset(["state_machine_arn"]),
    "EcsRunTaskOperator": frozenset(
        "cluster task_definition overrides launch_type capacity_provider_strategy network_configuration "
        "platform_version awslogs_group awslogs_stream_prefix awslogs_region awslogs_fetch_interval container_name "
        "wait_for_completion waiter_delay waiter_max_attempts reattach number_logs_exception".split()
    ),
    "BatchOperator": frozenset(
        "job_name job_definition job_queue overrides container_overrides parameters job_id "
        "share_identifier scheduling_priority_override max_retries status_retries region_name wait_for_completion "
        "poll_interval awslogs_enabled awslogs_fetch_interval waiters".split()
    ),
    # Those that create the job are left out: Sluice starts one that exists.
    "GlueJobOperator": frozenset(
        "job_name script_args run_job_kwargs wait_for_completion verbose job_poll_interval stop_job_run_on_kill "
        "resume_glue_job_on_retry durable".split()
    ),
    "EmrContainerOperator": frozenset(
        "name virtual_cluster_id execution_role_arn release_label job_driver client_request_token wait_for_completion "
        "poll_interval max_polling_attempts max_tries".split()
    ),
    "AthenaOperator": frozenset(
        "query database output_location workgroup catalog client_request_token sleep_time max_polling_attempts "
        "log_query poll_query_status".split()
    ),
    "LambdaInvokeFunctionOperator": frozenset("function_name invocation_type payload log_type".split()),
    "SqsPublishOperator": frozenset("sqs_queue message_group_id message_content".split()),
    "SnsPublishOperator": frozenset("target_arn subject message".split()),
}
# What an author may do about an operator without a target.
HINTS = {
    "SubDagOperator": "convert its DAG too, and write the nodes of that DAG in place of this node",
    "TriggerDagRunOperator": "remove the node, and let the other DAG wait for the workflow before it by program_status",
    "AthenaOperator": "write a target athena: ? in place of each {{ }}, and the values in parameters",
    "EmailOperator": "remove the node, and add notify to the workflow before it",
}
BY_STATE_MACHINE = (
    "Glue",
    "Athena",
    "Redshift",
    "Ecs",
    "Batch",
    "SageMaker",
    "Emr",
    "Dms",
    "DataSync",
    "Rds",
    "Bedrock",
)
_SPARK_VALUE = re.compile(r"[^\s\x00-\x1f\x7f\"'`\\]*")


@dataclass
class Targets:
    """The targets of tasks, with findings for what they do not carry over."""

    draft: Draft

    def of(self, task: Task) -> Document | None:
        """The target of an operator whose arguments contain all that Sluice needs; None for any other."""
        named = task.named
        if task.kind == "BashOperator":
            command = named.get("bash_command")
            plain = isinstance(command, str) and not has_template(command) and len(command) < 4_000
            known = plain and not {"env", "cwd", "append_env"} & set(named)
            return {"type": "worker", "pool": "bash", "arguments": ["bash", "-c", command]} if known else None
        if task.kind == "EmrServerlessStartJobOperator":
            return self._emr(task)
        if task.kind == "EmrContainerOperator":
            return self._eks(task)
        if task.kind == "SparkSubmitOperator":
            return self._spark_submit(task)
        if task.kind == "EcsRunTaskOperator":
            return self._ecs(task)
        if task.kind == "BatchOperator":
            return self._batch(task)
        if task.kind == "GlueJobOperator":
            return self._glue(task)
        if task.kind == "AthenaOperator":
            parts = ("query", "database", "output_location", "workgroup", "catalog")
            asked = {key: plain_text(named.get(key)) for key in parts if named.get(key) is not None}
            return athena_target(**asked) if all(asked.values()) else None
        arn = plain_text(named.get("state_machine_arn"))
        if task.kind == "StepFunctionStartExecutionOperator" and arn.startswith("arn:"):
            return {"type": "step_functions", "state_machine": arn}
        return None

    def _ecs(self, task: Task) -> Document | None:
        named = task.named
        asked = [named.get(key) for key in ("overrides", "network_configuration", "capacity_provider_strategy")]
        if any(_is_open(each) for each in asked):
            return None
        overrides, network, providers = asked
        texts = [
            plain_text(named.get(key)) for key in ("cluster", "task_definition", "launch_type", "platform_version")
        ]
        cluster, definition, launch_type, platform = texts
        return ecs_target(cluster, definition, overrides, network, launch_type, providers, platform)

    def _batch(self, task: Task) -> Document | None:
        named = task.named
        overrides, parameters = named.get("container_overrides") or named.get("overrides"), named.get("parameters")
        share, priority = plain_text(named.get("share_identifier")), named.get("scheduling_priority_override")
        others = any(named.get(key) for key in ("array_properties", "node_overrides", "eks_properties_override"))
        if others or _is_open([overrides, parameters, priority]):
            return None
        queue, definition = plain_text(named.get("job_queue")), plain_text(named.get("job_definition"))
        found = batch_target(queue, definition, overrides, parameters)
        more = {"share_identifier": share, "scheduling_priority": priority} if share else {}
        return found and {**found, **{key: value for key, value in more.items() if value is not None}}

    def _emr(self, task: Task) -> Document | None:
        driver = task.named.get("job_driver")
        submit = driver.get("sparkSubmit") if isinstance(driver, dict) else None
        if not isinstance(submit, dict) or _is_open(submit):
            return None
        entry, parameters = submit.get("entryPoint", ""), submit.get("sparkSubmitParameters") or ""
        if not isinstance(entry, str) or not isinstance(parameters, str):
            return None
        places = {key: task.named.get(key) for key in ("application_id", "execution_role_arn")}
        target = spark_target(
            plain_text(places["application_id"]),
            plain_text(places["execution_role_arn"]),
            entry,
            submit.get("entryPointArguments"),
            parameters,
        )
        if target is None:
            return None
        for key, value in places.items():
            if value is not None and not plain_text(value):
                self.draft.find(
                    f"line {task.line}",
                    f"{key} of {task.id} is not carried over, so the job runs with that of the installation",
                    "its value is computed at run time",
                    f"add {key} to the target if it is another",
                )
        self._say_if_it_goes_on(task)
        return target

    def _eks(self, task: Task) -> Document | None:
        driver, keys = task.named.get("job_driver"), ("virtual_cluster_id", "execution_role_arn", "release_label")
        submit = driver.get("sparkSubmitJobDriver") if isinstance(driver, dict) else None
        cluster, role, release = (plain_text(task.named.get(key)) for key in keys)
        if not isinstance(submit, dict) or _is_open(submit) or not (cluster and role and release):
            return None
        entry, arguments = str(submit.get("entryPoint", "")), submit.get("entryPointArguments")
        target = spark_target("", role, entry, arguments, str(submit.get("sparkSubmitParameters") or ""))
        if target is None:
            return None
        self._say_if_it_goes_on(task)
        return {**target, "type": "emr_eks", "virtual_cluster": cluster, "release": release}

    def _say_if_it_goes_on(self, task: Task) -> None:
        if task.named.get("wait_for_completion") is False:
            self.draft.find(
                f"line {task.line}",
                f"the tasks after {task.id} wait for the end of its job",
                "wait_for_completion=False goes on at once; a node of Sluice ends with its run",
                "remove its edges if the others need not wait",
            )

    def _glue(self, task: Task) -> Document | None:
        job, arguments = plain_text(task.named.get("job_name")), task.named.get("script_args") or {}
        more = task.named.get("run_job_kwargs") or {}
        if not isinstance(arguments, dict) or not isinstance(more, dict) or _is_open([arguments, more]):
            return None
        if task.mapped is not None or task.item:
            return None  # each element has arguments of its own
        found = glue_target({"JobName": job, "Arguments": arguments, **more})
        if found is not None:
            self._say_if_it_goes_on(task)
        return found

    def _spark_submit(self, task: Task) -> Document | None:
        named = task.named
        application, given = named.get("application"), named.get("application_args") or []
        read = [named.get(key) for key in OF_OPERATOR["SparkSubmitOperator"]]
        if not isinstance(application, str) or _is_open([application, *read]) or not isinstance(given, list | tuple):
            return None
        properties = {
            "num_executors": "spark.executor.instances",
            "total_executor_cores": "spark.cores.max",
            "executor_cores": "spark.executor.cores",
            "executor_memory": "spark.executor.memory",
            "driver_memory": "spark.driver.memory",
            "packages": "spark.jars.packages",
            "jars": "spark.jars",
            "files": "spark.files",
        }
        conf = named.get("conf") or {}
        if not isinstance(conf, dict):
            return None
        spark = {str(key): _spark_text(value) for key, value in conf.items()}
        spark |= {key: _spark_text(named[name]) for name, key in properties.items() if named.get(name) is not None}
        if not application.startswith("s3://") or not application.endswith(".py"):
            return None
        if not all(_SPARK_VALUE.fullmatch(value) for value in spark.values()):
            return None
        self.draft.find(
            f"line {task.line}",
            f"{task.id} runs on EMR Serverless",
            f"Airflow submits it to the cluster of the connection {named.get('conn_id', 'spark_default')}",
            "set application_id and execution_role_arn on the target, or write another target",
        )
        files = named.get("py_files")
        document = {
            "type": "emr_serverless",
            "entry_point": application,
            "arguments": [str(each) for each in given],
            "py_files": files.split(",") if isinstance(files, str) and files else None,
            "spark": spark,
        }
        return {key: value for key, value in document.items() if value}

    def retries(self, task: Task) -> Document | None:
        named = task.named
        number = named.get("retries")
        if number in (None, 0):
            return None
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            self._lost(task, "retries", "its value is computed at run time", "set retries on the workflow")
            return None
        if number > MAX_RETRIES:
            todo = "run the DAG again if that is too few"
            self._lost(task, f"retries above {MAX_RETRIES}", "a workflow has at most 20 attempts", todo)
        delay, longest = named.get("retry_delay"), named.get("max_retry_delay")
        if delay is not None and not isinstance(delay, Span):
            self._lost(task, "retry_delay", "its value is computed at run time", "set delay of retries")
        first = max(delay.seconds, 1) if isinstance(delay, Span) else 300
        found: Document = {"attempts": min(number, MAX_RETRIES) + 1, "delay": span(first)}
        if named.get("retry_exponential_backoff"):
            found["backoff"] = "exponential"
            found["max_delay"] = span(max(longest.seconds if isinstance(longest, Span) else 86_400, first))
        return found

    def timeout(self, task: Task) -> str | None:
        value = task.named.get("execution_timeout")
        if value is None:
            return None
        if not isinstance(value, Span):
            self._lost(task, "execution_timeout", "its value is computed at run time", "set timeout on the workflow")
            return None
        if not 60 <= value.seconds <= 30 * 86_400:
            self._lost(task, "execution_timeout", "1m to 30d are allowed", "set timeout on the workflow")
            return None
        return span(value.seconds)

    def _lost(self, task: Task, what: str, why: str, todo: str) -> None:
        self.draft.find(f"line {task.line}", f"{what} of {task.id} is not carried over", why, todo)

    # Arguments without a counterpart

    def report_dag(self, dag: Dag) -> None:
        where = f"DAG {dag.id}"
        for named in (dag.named, dag.defaults):
            for key, value in named.items():
                if key in LOST and _counts(key, value, named):
                    self.draft.find(where, f"{_shown(key, value)} is not carried over", *LOST[key])
        known = OF_DAG | set(LOST)
        others = [key for key, value in dag.named.items() if key not in known and _is_given(value)]
        if others:
            why, todo = "the converter does not know what they change", "look them up before you enable the DAG"
            self.draft.find(where, f"the arguments {', '.join(others)} are not carried over", why, todo)

    def report_task(self, dag: Dag, task: Task, target: Document | None) -> None:
        for key, value in task.named.items():
            is_limit_of_each = key == "max_active_tis_per_dagrun" and task.mapped is not None
            if key in LOST and key in task.own and not is_limit_of_each and _counts(key, value, task.named):
                self._lost(task, _shown(key, value), *LOST[key])
        for key in ("start_date", "end_date"):
            value = task.named.get(key)
            whole = (dag.named.get(key), dag.defaults.get(key))
            if key in task.own and isinstance(value, When | Unknown) and value not in whole:
                self._lost(task, key, "a node begins and ends with its DAG", "make a DAG of its own for it")
        if target is None:
            return
        known = OF_TASK | set(LOST) | OF_OPERATOR.get(task.kind, frozenset()) | {"aws_conn_id"}
        others = [key for key, value in task.named.items() if key in task.own - known and _is_given(value)]
        if task.named.get("aws_conn_id", "aws_default") not in ("aws_default", None):
            others.append("aws_conn_id")
        if others:
            verb = "is" if len(others) == 1 else "are"
            self.draft.find(
                f"line {task.line}",
                f"{', '.join(others)} of {task.id} {verb} not carried over",
                "the target has no such field",
                "look up what it has: docs/targets.md",
            )

    def report_missing(self, task: Task, workflow: str) -> None:
        """The finding for a task without a target."""
        todo = f"replace the target of workflows.{workflow}"
        if literals(task):
            todo += "; its literal arguments are in its properties"
        asked = task.own - OF_TASK - set(LOST) - {"python_callable"}
        unread = [key for key, value in task.named.items() if key in asked and _is_open(value, templates=False)]
        if any(isinstance(each, str) and has_template(each) for each in inside(task.named)):
            todo += "; let the job read its run context in place of {{ }}"
        if task.kind in HINTS:
            todo += f"; or {HINTS[task.kind]}"
        elif task.kind.startswith(BY_STATE_MACHINE) and task.kind != "EmrServerlessStartJobOperator":
            todo += "; or let a state machine of Step Functions make the call"
        if unread:
            todo += f"; not read: {', '.join(unread)}"
        self.draft.find(
            f"line {task.line}",
            f"{task.kind} {task.id} became the workflow {workflow}, whose target is missing",
            "Sluice runs no code of Airflow",
            todo,
        )


def delivery(task: Task) -> Document | None:
    """The target of an operator that sends something and does not wait for an end; None for any other operator, and for
    one whose address is no plain value."""
    named = task.named
    if task.kind == "LambdaInvokeFunctionOperator":
        function = plain_text(named.get("function_name"))
        waits = named.get("invocation_type", "RequestResponse") == "RequestResponse"
        found: Document = {"type": "lambda", "function": function, **({"wait": True} if waits else {})}
        return found if function.startswith("arn:") else None
    if task.kind == "SqsPublishOperator":
        url, group = plain_text(named.get("sqs_queue")), plain_text(named.get("message_group_id"))
        found = {"type": "sqs", "queue_url": url, **({"group": group} if group else {})}
        return found if url.startswith("https://") else None
    if task.kind == "SnsPublishOperator":
        topic, subject = plain_text(named.get("target_arn")), plain_text(named.get("subject"))
        found = {"type": "sns", "topic_arn": topic, **({"subject": subject} if subject else {})}
        return found if topic.startswith("arn:") else None
    return None


def has_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def plain_text(value: Any) -> str:
    """A text without a template; else an empty one."""
    return value if isinstance(value, str) and not has_template(value) else ""


def literals(task: Task) -> Document:
    """The arguments of a task that are plain values, for the user who fills in the workflow."""
    found = {}
    for key, value in task.named.items():
        empty = value is None or value in ("", [], {}, ())
        if key in task.own - OF_TASK - set(LOST) and not empty and not _is_open(value, templates=False):
            found[key] = json.loads(json.dumps(value))
    return found


def _is_open(value: Any, templates: bool = True) -> bool:
    """Whether a part of a value is known only at run time."""
    for each in inside(value):
        if not (each is None or isinstance(each, str | int | float | bool | list | tuple | dict)):
            return True
        if templates and isinstance(each, str) and has_template(each):
            return True
    return False


def _is_given(value: Any) -> bool:
    return value not in (None, False, "", [], {}, ())


def _counts(key: str, value: Any, named: dict[str, Any]) -> bool:
    """Whether an argument has an effect: a mail is sent unless the flags beside it say no."""
    if key == "email" and named.get("email_on_failure") is False:
        return False
    return _is_given(value) and value != 0 and value not in AS_DEFAULT.get(key, ())


def _shown(key: str, value: Any) -> str:
    return (
        f"{key}={value}"
        if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) < 60
        else key
    )


def _spark_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
