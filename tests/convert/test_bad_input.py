"""Input that cannot be converted: an error with instructions, and never a traceback (L20)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice import yaml12
from sluice.cli import app as sluice
from tests.convert.conftest import converted

DAG = "from airflow import DAG\n"
LOOP = f"{DAG}with DAG('d'):\n    a, b, c = [BashOperator(task_id=n, bash_command='x') for n in 'a b c'.split()]\n"
# Nine levels of lists, each with ten times the one before.
ALIASES = "x-l0: &l0 [x]\n" + "".join(f"x-l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("crontab", "", "expected a crontab with lines such as"),
        ("crontab", "# nothing but a comment\n", "expected a crontab with lines such as"),
        ("eventbridge", "", "expected the JSON of `aws scheduler get-schedule`"),
        ("eventbridge", "{", "expected JSON, got"),
        ("eventbridge", "5", "got 5"),
        ("eventbridge", '{"Rules": []}', "got none"),
        ("cdap", "[1]", "expected the JSON of a CDAP schedule, or a list of them, got 1"),
        ("cdap", "[" * 100_000, "nested too deep"),
        ("airflow", "", "expected a DAG file of Airflow, got no DAG"),
        ("airflow", "with DAG(", "expected a DAG file in Python"),
        ("airflow", "x = 'a\0b'", "expected a DAG file in Python"),
        ("airflow", f"{DAG}with DAG('d'):\n  a = B()\n  if a\n", "line 4"),
        ("airflow", f"{LOOP}    a >> b >> c >> a\n", "expected tasks in an order, got a >> b >> c >> a"),
        ("airflow", f"{LOOP}    a >> b >> a\n", "line 3, DAG d"),
        ("mwaa", "", "expected DAGs in YAML, got NoneType"),
        ("mwaa", "[1]", "expected DAGs in YAML, got list"),
        ("mwaa", "d:\n  schedule: '@daily'\n", "expected DAGs in YAML, got none"),
        ("mwaa", "d:\n  tasks:\n    a: {operator: x.B\n", "line 4"),
        ("mwaa", "d:\n  tasks:\n    a: {operator: x.B}\n    a: {operator: x.B}\n", "the key a a second time"),
        ("mwaa", "d:\n  tasks:\n    a: {operator: x.B}\n    a: {operator: x.B}\n", "line 4"),
        ("mwaa", "d:\n  tasks:\n  - {task_id: a, operator: x.B}\n  - {task_id: a, operator: x.B}\n", "line 4"),
        ("mwaa", "d:\n  tasks:\n    a: {bash_command: x}\n", "expected an operator of the task a"),
        ("mwaa", "d:\n  tasks:\n    a: {operator: x.B, dependencies: [b]}\n", "the name of a task or a group"),
        ("mwaa", "d:\n  tasks:\n    a: {operator: x.B, task_group_name: g}\n", "expected a task group, got 'g'"),
        ("mwaa", "d:\n  tasks: 5\n", "expected tasks by name, or a list of them, got 5"),
        ("mwaa", "d:\n  tasks:\n    a: 5\n", "expected an object with task_id, got 5"),
        ("mwaa", "d:\n  tasks:\n    a: {operator: x.B, expand: 5}\n", "expected the arguments of expand, got 5"),
        (
            "mwaa",
            "d:\n  tasks:\n    a: {operator: x.B, dependencies: [b]}\n    b: {operator: x.B, dependencies: [a]}\n",
            "expected tasks in an order, got a >> b >> a",
        ),
        ("mwaa", "d: &d\n  tasks:\n    a: {operator: x.B, args: *d}\n", "expected at most 100000 values"),
        ("mwaa", f"{ALIASES}d:\n  tasks:\n    a: {{operator: x.B, args: *l9}}\n", "expected at most 100000 values"),
        ("mwaa", "[" * 3_000, "expected DAGs in YAML"),
        ("airlow", "", "did you mean"),
    ],
)
def test_l20_bad_input_is_an_error_with_what_to_do(kind: str, text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    result = CliRunner().invoke(sluice, ["convert", kind, str(file)])
    assert result.exit_code == 2
    assert words in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output
    assert "unexpected" not in result.stderr


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("eventbridge", '{"Name": "x"}', "it is neither a schedule nor a rule"),
        ("eventbridge", '{"Name": "x", "ScheduleExpression": "cron(1 2)", "Target": {}}', "none of cron(), rate()"),
        ("eventbridge", '{"Name": "x", "ScheduleExpression": "cron(0 1 * * * *)", "Target": {}}', "must be ?"),
        (
            "eventbridge",
            '{"Name": "x", "ScheduleExpression": "cron(0 1 31W 2 ? *)", "Target": {}}',
            "no such date exists",
        ),
        (
            "eventbridge",
            '{"Name": "x", "ScheduleExpression": "cron(0 1 L-31 * ? *)", "Target": {}}',
            "is not from 1 to 31",
        ),
        ("cdap", '{"name": "x"}', "the trigger without a type"),
        ("cdap", '{"name": "x", "trigger": {"type": "TIME", "cronExpression": 5}}', "neither 5 nor 6 fields"),
        ("airflow", f"{DAG}DAG('x', schedule='0 25 * * *')", "'25' in hour"),
        ("airflow", f"{DAG}with DAG('x'):\n  while go():\n    B(task_id='a')", "the loop while go() was not read"),
        ("airflow", f"{DAG}with DAG('x'):\n  A(task_id='a') >> find('b')", "the order of find('b') was not read"),
        ("airflow", f"{DAG}with DAG('x', schedule='@fortnightly'): pass", "Airflow has no such preset"),
        ("airflow", f"{DAG}with DAG('x', surprise=5): pass", "the arguments surprise are not carried over"),
        ("airflow", f"{DAG}DAG('x')\nDAG('x')", "a second DAG is named x"),
        (
            "mwaa",
            "x: {tasks: {a: {operator: own.Strange}}}",
            "Strange a became the workflow a, whose target is missing",
        ),
        ("mwaa", "x: {schedule: '0 4 * * ? *', tasks: {a: {operator: b.C}}}", "its schedule was not converted"),
        (
            "mwaa",
            "x: {start_date: 2 days, schedule: '@daily', tasks: {a: {operator: b.C}}}",
            "start_date is not carried",
        ),
        ("mwaa", "x: {tasks: {a: {operator: b.C, v: !!python/name:os.system x}}}", "not read: v"),
        ("mwaa", "note: {a: 1}\nx: {tasks: {a: {operator: b.C}}}", "note is no DAG, and was not converted"),
        ("airflow", f"{DAG}def f(): return f()\nDAG('x', schedule=f())", "its schedule was not converted"),
    ],
)
def test_a_part_that_cannot_be_converted_is_in_the_report(kind: str, text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    result = CliRunner().invoke(sluice, ["convert", kind, str(file)])
    assert (result.exit_code, words in result.stderr) == (0, True), result.stderr


def test_a_dag_file_is_never_executed(tmp_path: Path) -> None:
    file, mark = tmp_path / "dag.py", tmp_path / "executed"
    file.write_text(f"{DAG}open({str(mark)!r}, 'w')\nDAG('x', schedule=None)\n")
    assert CliRunner().invoke(sluice, ["convert", "airflow", str(file)]).exit_code == 0
    assert not mark.exists()


@pytest.mark.parametrize("sign", ["\x1b", "\u202e", "\u200b"])
def test_what_would_steer_a_terminal_is_escaped(sign: str) -> None:
    """The document keeps the value, wherever it goes."""
    given = f"0 5 * * * /bin/load 'a{sign}b'\nno line {sign}\n"
    result = CliRunner().invoke(sluice, ["convert", "crontab", "-", "--user"], input=given)
    assert result.exit_code == 0, result.output
    assert sign not in result.output
    assert json.dumps(sign)[1:-1] in json.dumps(yaml12.load(result.stdout))


MIDDLE = """
from airflow import DAG
from airflow.sensors.time_delta import {kind}
from airflow.operators.bash import BashOperator

with DAG("night", schedule="0 3 * * *", max_active_runs={most}):
    BashOperator(task_id="a", bash_command="x") >> {kind}(task_id="wait") >> BashOperator(task_id="b", bash_command="y")
"""


@pytest.mark.parametrize(
    ("kind", "constraint"),
    [
        ("TimeDeltaSensor", "delay"),
        ("DateTimeSensorAsync", "time_window"),
        ("HttpSensor", "probe"),
        ("SqlSensor", "fresh or probe"),
    ],
)
def test_l26_a_sensor_in_the_middle_says_what_to_do(kind: str, constraint: str) -> None:
    report = converted("airflow", "-", given=MIDDLE.format(kind=kind, most=1)).report
    assert f"the {kind} wait became the workflow" in report
    assert f"or remove the node and add {constraint} to the next one" in report


@pytest.mark.parametrize("most", ["0", "'2'", "Variable.get('n')"])
def test_l26_a_number_of_runs_that_is_none_is_reported(most: str) -> None:
    found = converted("airflow", "-", given=MIDDLE.format(kind="SqlSensor", most=most))
    assert "max_active_runs is not carried over" in found.report
    assert "concurrency: {max: ..., on_unmet: wait}" in found.report
    assert "on_unmet" not in found.document


def test_l26_an_event_of_a_function_with_a_node_after_it_is_said() -> None:
    text = MIDDLE.format(kind="LambdaInvokeFunctionOperator", most=1).replace(
        'task_id="wait"',
        'task_id="wait", function_name="arn:aws:lambda:eu-west-1:123456789012:function:f", invocation_type="Event", '
        'payload="{}"',
    )
    found = converted("airflow", "-", given=text)
    assert "wait: true" in found.document
    assert "the nodes after wait wait for the end of its function" in found.report
    assert "the content that wait sends is not carried over" in found.report
