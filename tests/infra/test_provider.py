"""The Lambda of ``Custom::SluiceApp``: its code, its template, and the construct of the CDK (O13)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infra import provider, yaml_tags

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib"
NODE = ROOT / "build/console-venv/bin"
SYNTH = """
import json, sys
sys.path.insert(0, sys.argv[1])
from aws_cdk import App, Stack
from sluice_cdk import SluiceApp, SluiceAppProvider
app = App(outdir=sys.argv[3])
stack = Stack(app, "orders")
sluice = SluiceAppProvider(stack, "Sluice", api_id="a1b2c3d4e5", namespace="demo", code=sys.argv[2])
body = {"workflows": {"a": {"priority": 5, "arn": sluice.function.function_arn}}}
SluiceApp(stack, "Shop", provider=sluice, app="shop", document=body, restart=True, update_schedules=False)
SluiceApp(stack, "Text", provider=sluice, app="text", document="workflows: {}", adopt=True)
print(json.dumps(app.synth().get_stack_by_name("orders").template))
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return provider.build(tmp_path_factory.mktemp("provider"))


def test_o13_the_code_needs_nothing_but_the_runtime(code: Path) -> None:
    """In an interpreter without packages, the handler refuses wrong properties. Nothing sends its answer."""
    played = (
        f"import sys; sys.path.insert(0, {str(code)!r})\n"
        "from sluice import cloudformation\n"
        "event = {'RequestType': 'Create', 'StackId': 'a/b/c', 'LogicalResourceId': 'Shop', 'RequestId': 'r',\n"
        "         'ResourceProperties': {'Namespace': 'demo', 'App': 'shop', 'Document': '- 1'}}\n"
        "print(cloudformation.handled(None, event).reason)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", played], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Document: expected an app document, got a list (")


def test_o13_the_same_sources_give_the_same_code(code: Path, tmp_path: Path) -> None:
    assert provider.main([str(tmp_path)]) == 0
    assert (tmp_path / provider.NAME).read_bytes() == code.read_bytes()
    assert provider.main([]) == 2


def test_o13_lambda_may_read_each_file(code: Path) -> None:
    with zipfile.ZipFile(code) as archive:
        assert {each.external_attr >> 16 for each in archive.infolist()} == {0o644}


def test_o13_the_templates_are_valid() -> None:
    files = [str(path) for path in sorted((CONTRIB / "cloudformation").glob("*.yaml"))]
    assert len(files) == 2
    lint = Path(sys.executable).parent / "cfn-lint"
    done = subprocess.run([str(lint), "--region", "eu-central-1", "--", *files], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.long
def test_o13_the_construct_of_the_cdk_makes_the_same_function(code: Path, tmp_path: Path) -> None:
    """The CDK itself writes the template. Its function and permissions are those of provider.yaml."""
    python = ROOT / "build/cdk-venv/bin/python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "-r", str(CONTRIB / "cdk/requirements.txt")]
    subprocess.run(pip, check=True)
    environment = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}
    command = [str(python), "-c", SYNTH, str(CONTRIB / "cdk"), str(code), str(tmp_path / "cdk.out")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    resources = json.loads(done.stdout)["Resources"]
    made = _only(resources, "AWS::Lambda::Function")
    ours = yaml_tags.load((CONTRIB / "cloudformation/provider.yaml").read_text())["Resources"]
    wanted = _only(ours, "AWS::Lambda::Function")
    for field in ("Runtime", "Architectures", "Handler", "MemorySize", "Timeout", "Description"):
        text = json.dumps(wanted[field]).replace("${Namespace}", "demo")
        assert json.dumps(made[field]) == text.replace('{"Fn::Sub": ', "").replace("}", "")
    invoked = _only(resources, "AWS::Lambda::EventInvokeConfig")
    expected = _only(ours, "AWS::Lambda::EventInvokeConfig")
    assert {name: invoked[name] for name in expected if name.startswith("Maximum")} == {
        name: value for name, value in expected.items() if name.startswith("Maximum")
    }
    said = _only(resources, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert [each["Action"] for each in said] == ["execute-api:Invoke", "cloudformation:DescribeStackResource"]
    shop, text_app = (each["Properties"] for each in resources.values() if each["Type"] == "Custom::SluiceApp")
    assert (shop["Namespace"], shop["App"], shop["Restart"], shop["UpdateSchedules"]) == (
        "demo",
        "shop",
        "true",
        "false",
    )
    assert '"priority":5' in json.dumps(shop["Document"]).replace('\\"', '"')
    assert (text_app["Document"], text_app["Adopt"]) == ("workflows: {}", "true")


def _only(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    [found] = [each["Properties"] for each in resources.values() if each["Type"] == kind]
    return dict(found)
