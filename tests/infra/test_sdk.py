"""The AWS SDK in the package: the version that is tested, with the models of all services that the code calls."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import botocore
import pytest

from chalicelib.aws import models
from infra import sdk

ROOT = Path(__file__).parents[2]
INSTALLED = Path(botocore.__file__).parent.parent
NEEDED = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py")
MAKE_ALL = """
import sys, pathlib
sys.path[:] = [sys.argv[1], *(each for each in sys.path if "site-packages" not in each)]
import boto3, botocore.session
assert pathlib.Path(boto3.__file__).is_relative_to(sys.argv[1]), boto3.__file__
options = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "eu-west-1"}
for service in sys.argv[2].split(","):
    boto3.client(service, **options)
    botocore.session.Session().create_client(service, **options)
from boto3.dynamodb.types import TypeSerializer
print(boto3.__version__, boto3.client("s3", **options).meta.endpoint_url)
"""

OTHERS = ("rds", "kinesis")  # two of the services that a target may call
CALL_OTHERS = """
import sys, pathlib
own = [each for each in sys.path if "site-packages" not in each]
sys.path[:] = [sys.argv[1], sys.argv[2], *own, *(each for each in sys.path if "site-packages" in each)]
import botocore.session
from chalicelib.aws import models
from chalicelib.aws.targets import api_models
assert str(models.OWN).startswith(sys.argv[1]), models.OWN
options = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "eu-west-1"}
for service in sys.argv[3].split(","):
    session = botocore.session.Session()
    session.register_component("data_loader", models.loader(service))
    print(session.create_client(service, **options).meta.service_model.service_name)
api_models.check({"service": "rds", "action": "start_db_instance", "input": {"DBInstanceIdentifier": "a"}})
assert "s3" in models.services() and models.loader("s3") is not models.loader("rds")
"""


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vendor")
    for name in NEEDED:
        source = INSTALLED / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_left_out)
        else:
            shutil.copyfile(source, folder / name)
    sdk.prune(folder)
    return folder


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Compiled modules, and the models of most services, which take long to prune."""
    is_models = Path(folder) == INSTALLED / "botocore/data"
    kept = {*sdk.SERVICES, *OTHERS}
    return {name for name in names if name == "__pycache__" or (is_models and "." not in name and name not in kept)}


def test_the_package_has_models_of_the_services_that_are_called() -> None:
    """A client of another service would fail in Lambda, and nowhere else."""
    sources = (path.read_text() for path in (ROOT / "chalicelib").rglob("*.py"))
    called = {name for text in sources for name in re.findall(r'(?:client|make)\(\s*"([a-z0-9-]+)"', text)}
    assert called == sdk.SERVICES


def test_a_pruned_sdk_makes_every_client(pruned: Path) -> None:
    command = [sys.executable, "-c", MAKE_ALL, str(pruned), ",".join(sorted(sdk.SERVICES))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [boto3.__version__, "https://s3.eu-west-1.amazonaws.com"]


def test_w22_the_models_of_other_services_lie_beside(pruned: Path) -> None:
    assert models.OTHERS.name == sdk.OTHERS
    command = [sys.executable, "-c", CALL_OTHERS, str(pruned), str(ROOT), ",".join(OTHERS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(OTHERS)


def test_a_pruned_sdk_has_no_other_models(pruned: Path) -> None:
    own = {path.name for path in (pruned / "botocore/data").iterdir() if path.is_dir()}
    assert own == sdk.SERVICES
    assert {path.name for path in (pruned / "botocore" / sdk.OTHERS).iterdir()} == set(OTHERS)
    assert not (pruned / "boto3/data").exists()
    assert not list(pruned.rglob("examples-1.json*"))


def test_a_pruned_model_has_all_but_its_documentation(pruned: Path) -> None:
    for service in sorted(sdk.SERVICES):
        own, tested = (
            json.loads(
                gzip.decompress(next((folder / "botocore/data" / service).rglob("service-2.json.gz")).read_bytes())
            )
            for folder in (pruned, INSTALLED)
        )
        assert own == sdk.without_documentation(tested)
        assert own["operations"].keys() == tested["operations"].keys()
        assert '"documentation":"' not in json.dumps(own, separators=(",", ":"))
    named = {"members": {"documentation": {"shape": "Text", "documentation": "a text"}}, "required": ["documentation"]}
    assert sdk.without_documentation(named) == {
        "members": {"documentation": {"shape": "Text"}}, "required": ["documentation"],
    }  # fmt: skip


def test_the_deployed_sdk_is_pinned_to_the_tested_one() -> None:
    pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements-lambda.lock").read_text(), flags=re.M))
    assert (pins["boto3"], pins["botocore"]) == (boto3.__version__, botocore.__version__)


def test_a_package_without_dependencies_has_no_sdk(tmp_path: Path) -> None:
    sdk.prune(tmp_path)
    assert list(tmp_path.iterdir()) == []
