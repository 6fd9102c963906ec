"""The content of the package: the service's code, Chalice's runtime, the pinned requirements, and nothing else."""

import ast
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infra import package, yaml_tags
from infra.bytecode import compiled_name

ROOT = Path(__file__).parents[2]
# Distribution to import name where they differ. boto3 requires botocore, and Chalice packages itself.
IMPORT_NAMES = {"aws-lambda-powertools": "aws_lambda_powertools"}
PROVIDED = {"botocore", "chalice", "chalicelib", "typing_extensions"}  # the last one by pydantic


def test_without_dependencies_the_package_is_only_our_code(packaged: Path) -> None:
    names = zipfile.ZipFile(packaged / "deployment.zip").namelist()
    assert {"app.py", "chalicelib/__init__.py", "chalice/app.py"} <= set(names)
    sources = {name for name in names if not name.endswith(".pyc")}
    assert {name.split("/")[0] for name in sources} == {"app.py", "chalicelib", "chalice"}
    modules = {name for name in sources if name.endswith(".py")}
    assert set(names) - sources <= {compiled_name(name) for name in modules}


def test_the_deployed_code_imports_only_what_is_packed() -> None:
    required = {line.split("==")[0] for line in _requirements()}
    packed = {IMPORT_NAMES.get(name, name) for name in required} | PROVIDED
    used = {
        (name, file.relative_to(ROOT))
        for file in [ROOT / "app.py", *(ROOT / "chalicelib").rglob("*.py")]
        for name in _imports(file)
        if name not in sys.stdlib_module_names
    }
    assert not {(name, str(file)) for name, file in used if name not in packed}


def test_runtime_requirements_are_pinned_exactly() -> None:
    assert all("==" in line for line in _requirements())


def test_a_checkout_that_does_not_import_says_why(tmp_path: Path) -> None:
    (tmp_path / ".chalice").mkdir()
    (tmp_path / ".chalice/config.json").write_text((ROOT / ".chalice/config.json").read_text())
    (tmp_path / "chalicelib").mkdir()
    (tmp_path / "app.py").write_text("import nonesuch\n")
    with pytest.raises(package.PackageError, match="app.py cannot be imported") as caught:
        package.package(tmp_path / "out", with_dependencies=False, root=tmp_path)
    _, where, line, what = str(caught.value).splitlines()
    assert where.strip().startswith('File "app.py", line 1')
    assert (line.strip(), what) == ("import nonesuch", "ModuleNotFoundError: No module named 'nonesuch'")


def test_all_lambdas_have_the_architecture_of_the_wheels(packaged: Path) -> None:
    template = yaml_tags.load((packaged / "template.yaml").read_text())
    functions = [each for each in template["Resources"].values() if each["Type"] == "AWS::Serverless::Function"]
    assert len(functions) == 9
    assert [each["Properties"]["Architectures"] for each in functions] == [[package.architecture_of()]] * 9


def test_an_architecture_that_lambda_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(package.PackageError, match=r"expected arm64 or x86_64 as lambda_architecture .*, got riscv"):
        package.download(ROOT / package.PINS, tmp_path, "riscv")


@pytest.mark.long
@pytest.mark.parametrize("python", ["3.11", "3.13"])
@pytest.mark.parametrize(("architecture", "named"), [("arm64", "aarch64"), ("x86_64", "x86_64")])
def test_wheels_are_those_of_the_architecture_and_python(
    tmp_path: Path, architecture: str, named: str, python: str
) -> None:
    """Those of Python 3.13, too, so that a change of the runtime needs no other pins (decision 0112)."""
    package.download(ROOT / package.PINS, tmp_path, architecture, python)
    compiled = [file.name for file in tmp_path.rglob("*.so")]
    assert compiled
    assert all(name.endswith(f".cpython-{python.replace('.', '')}-{named}-linux-gnu.so") for name in compiled)


def test_wheels_are_for_the_python_that_packages(packaged: Path) -> None:
    """Chalice names its runtime, and compiled modules are for it: all three change together."""
    template = yaml_tags.load((packaged / "template.yaml").read_text())
    functions = [each for each in template["Resources"].values() if each["Type"] == "AWS::Serverless::Function"]
    assert {each["Properties"]["Runtime"] for each in functions} == {f"python{package.PYTHON}"}
    assert compiled_name("a.py").endswith(f".cpython-{package.PYTHON.replace('.', '')}.pyc")


@pytest.mark.long
def test_the_whole_package_imports_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked long because it downloads wheels: those for this machine. No other modules are visible."""
    own = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    monkeypatch.setattr(package, "architecture_of", lambda root: own)
    package.package(tmp_path)
    assert (tmp_path / "deployment.zip").stat().st_size < 13_000_000, "a large package starts slowly"
    code = tmp_path / "code"
    zipfile.ZipFile(tmp_path / "deployment.zip").extractall(code)
    script = f"import sys; sys.path.insert(0, {str(code)!r}); import app, boto3; print(app.app.app_name)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        text=True,
        env={"AWS_DEFAULT_REGION": "us-east-1", "PATH": "/usr/bin:/bin"},
    )
    assert (done.stdout.strip(), done.stderr) == ("sluice", "")


def _requirements() -> list[str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found
