"""Which module may import which, and what the rules in `core` may not touch.

    core  <-  ports  <-  flow  <-  web          (an arrow points at what is imported)
                 ^-  aws        wiring joins them, handlers and app.py are entry points

The commands of an administrator (`sluice/operations`) stand beside the entry points: they import from all layers but
`web`. Their own rules, in `sluice/operations/rules`, are as pure as `core`.

`ORDER` lists the packages of the service, the lowest layer first. A module imports only from its own package and from
those before it in the list.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.definition_kinds import PARENTS
from chalicelib.core.states import TRAITS
from chalicelib.core.triggers.registry import LEAVES

ROOT = Path(__file__).parents[1]
# A name without a package is a module at the root of its layer. `core.writes` and the three of `flow` after its limits
# are such modules, with their own place in the order.
ORDER = """
core
core.access core.quotas core.time core.rows core.writes core.limits core.audit
core.targets core.triggers core.constraints core.definitions
core.dags core.events core.fires core.runs core.openlineage core.jobs core.schedules core.notices core.backfills
core.history core.system
collector log settings ports
aws aws.tables aws.s3 aws.targets aws.openlineage
flow flow.limits flow.facts flow.priority flow.wake flow.shards flow.definitions flow.fires flow.notices flow.ingest
flow.runs flow.deliveries flow.jobs flow.backfills flow.schedules flow.dags flow.deploy flow.views flow.history
flow.openlineage flow.system
wiring
web web.routes
handlers
""".split()
# Written in two parts, so that this file does not break the rule that it states.
PRIVATE = re.compile(r"(?<![\w.])/" + r"work\b|\.\./" + r"shared\b")


class Import(NamedTuple):
    module: str
    line: int
    in_function: bool

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


@cache
def kept() -> tuple[Path, ...]:
    return _kept_in(ROOT)


def _kept_in(root: Path) -> tuple[Path, ...]:
    """The files that git keeps, and the new ones in folders of the project. What a user writes beside those folders,
    such as the app of the README, is not the project's."""
    tracked, new = _listed(root, "--cached"), _listed(root, "--others", "--exclude-standard")
    folders = {name.partition("/")[0] for name in tracked if "/" in name}
    names = {*tracked, *(name for name in new if name.partition("/")[0] in folders)}
    return tuple(path for name in sorted(names) if (path := root / name).is_file())


def _listed(root: Path, *options: str) -> list[str]:
    command = ["git", "ls-files", "-z", *options]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@cache
def modules(folder: str) -> list[Path]:
    found = [path for path in kept() if path.suffix == ".py" and path.is_relative_to(ROOT / folder)]
    assert found, f"expected modules under {folder}, found none"
    return found


def of_service() -> list[Path]:
    """The modules that decide about stored rows: those of the Lambdas, and those of an administrator's commands."""
    return [*modules("chalicelib"), *modules("sluice/operations")]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path) -> list[Import]:
    return list(_imports(tree(path), path, in_function=False))


def _imports(node: ast.AST, path: Path, in_function: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, in_function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            # `from package import x` names either a module or a name in one; the longer name is more exact.
            base = _base(child, path)
            yield from (Import(f"{base}.{alias.name}", child.lineno, in_function) for alias in child.names)
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(child, path, inside)


def _base(node: ast.ImportFrom, path: Path) -> str:
    if node.level == 0:
        return node.module or ""
    package = path.relative_to(ROOT).parts[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def breaches(folder: str, *allowed: str) -> list[str]:
    """The imports in a folder that are neither of the standard library nor allowed."""
    return [
        f"{path.relative_to(ROOT)}:{found.line} imports {found.module}"
        for path in modules(folder)
        for found in imports(path)
        if found.top not in sys.stdlib_module_names and not _is_under(found.module, allowed)
    ]


def _is_under(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


# What the steps of an administrator's commands import, besides the modules of their own package.
STEPS = ("chalicelib.core", "chalicelib.flow", "chalicelib.log", "chalicelib.ports")
STEPS += ("sluice.operations.ports", "sluice.operations.rules")


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("chalicelib/core", ["pydantic", "typing_extensions", "tzdata", "chalicelib.core"]),
        ("chalicelib/flow", ["chalicelib.core", "chalicelib.ports", "chalicelib.log", "chalicelib.flow"]),
        (
            "chalicelib/web",
            # pydantic, because a body is parsed as the document that it is, and the OpenAPI text is made of those
            # documents
            [
                *["chalice", "pydantic", "chalicelib.web", "chalicelib.flow", "chalicelib.core"],
                *["chalicelib.ports", "chalicelib.wiring", "chalicelib.log"],
            ],
        ),
        ("sluice/operations/rules", ["chalicelib.core", "pydantic", "sluice.operations.rules"]),
        ("sluice/operations/archive", [*STEPS, "sluice.operations.archive"]),
        ("sluice/operations/repair", [*STEPS, "sluice.operations.archive", "sluice.operations.repair"]),
        ("jobs", ["pyspark", "sluice_job", "history_days", "flight_features", "flight_models", "training_set"]),
    ],
)
def test_a_package_imports_only_what_is_below_it(folder: str, allowed: list[str]) -> None:
    assert breaches(folder, *allowed) == []


def test_only_aws_imports_boto_and_only_wiring_makes_clients() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{each.line} imports {each.module}"
        for path in [*modules("chalicelib"), ROOT / "app.py"]
        for each in imports(path)
        if each.top in ("boto3", "botocore") and not path.is_relative_to(ROOT / "chalicelib/aws")
        if not (path == ROOT / "chalicelib/wiring.py" and each.in_function)
    ]
    assert found == []


def test_the_service_never_imports_the_client() -> None:
    """A Lambda has no `sluice` package."""
    service = [*modules("chalicelib"), ROOT / "app.py"]
    assert [str(path) for path in service for each in imports(path) if each.top == "sluice"] == []


def test_the_client_never_imports_the_service() -> None:
    """``pip install sluice`` installs what a client needs. Only the extra ``testing`` installs the service."""
    service = (ROOT / "sluice/testing", ROOT / "sluice/operations")  # the commands that an administrator runs
    client = [path for path in modules("sluice") if not any(path.is_relative_to(each) for each in service)]
    assert [str(path) for path in client for each in imports(path) if each.top == "chalicelib"] == []


def test_the_client_never_imports_the_testing_package() -> None:
    """Only the plugin names it: for types, and in the fixture."""
    outside = (ROOT / "sluice/testing", ROOT / "sluice/operations", ROOT / "sluice/pytest_plugin.py")
    client = [path for path in modules("sluice") if not any(path.is_relative_to(each) for each in outside)]
    found = [
        str(path)
        for path in client
        for each in imports(path)
        if _is_under(each.module, ("sluice.testing",)) and not each.in_function
    ]
    assert found == []


@pytest.mark.parametrize(
    ("apart", "door"), [("sluice/convert", "sluice/cli/convert.py"), ("benchmarks/aws_model", "benchmarks")]
)
def test_what_lies_apart_is_imported_through_one_door(apart: str, door: str) -> None:
    """A reader of the service, the client or the command line needs neither of these packages."""
    package = apart.replace("/", ".")
    outside = [path for folder in ("chalicelib", "sluice", "infra", "benchmarks") for path in modules(folder)]
    found = {
        path.relative_to(ROOT)
        for path in outside
        for each in imports(path)
        if _is_under(each.module, (package,)) and not path.is_relative_to(ROOT / apart)
    }
    assert [path for path in found if not path.is_relative_to(door)] == []


def test_the_testing_package_uses_no_api_and_no_aws() -> None:
    outside = ("chalicelib.web", "chalicelib.wiring", "chalicelib.handlers", "chalicelib.aws.s3", "boto3")
    found = [
        f"{path.relative_to(ROOT)}:{each.line} imports {each.module}"
        for path in modules("sluice/testing")
        for each in imports(path)
        if _is_under(each.module, outside)
    ]
    assert found == []


def test_the_core_uses_no_clock_random_environment_or_log() -> None:
    """Its results follow from its arguments, so every decision can be repeated and tested. A UUID of version 5 does."""
    impure = re.compile(
        r"(datetime\.)*(datetime|date)\.(now|today|utcnow)|time\.\w+|random(\.\w+)*|secrets(\.\w+)*|uuid(\.(?!UUID$|uuid5$)\w+)*"
        r"|os\.\w+(\.\w+)*|logging(\.\w+)*|print|open|input"
    )
    found = [
        f"{path.relative_to(ROOT)}:{line} uses {name}"
        for path in [*modules("chalicelib/core"), *modules("sluice/operations/rules")]
        for line, name in [*_names(tree(path)), *((each.line, each.module) for each in imports(path))]
        if impure.fullmatch(name)
    ]
    assert found == []


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.lineno, ast.unparse(each)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            yield each.lineno, each.func.id


def test_no_module_of_the_service_is_in_an_import_cycle() -> None:
    names = {name_of(path): path for path in of_service()}
    graph = {
        name: {known for each in imports(path) if (known := _known(each.module, names))} - {name}
        for name, path in names.items()
    }
    while leaf := next((name for name, needs in graph.items() if not needs), None):
        del graph[leaf]
        graph = {name: needs - {leaf} for name, needs in graph.items()}
    assert graph == {}, "these modules import each other, directly or through others"


def _known(module: str, names: dict[str, Path]) -> str | None:
    """The module of this repository that an imported name is, or belongs to."""
    if module in names:
        return module
    parent = module.rpartition(".")[0]
    return parent if parent in names else None


def test_a_module_imports_only_packages_above_its_own() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{each.line} imports {each.module}, of {ORDER[_place(each.module)]}"
        for path in modules("chalicelib")
        if name_of(path) != "chalicelib"
        for each in imports(path)
        if each.top == "chalicelib" and _place(each.module) > _place(name_of(path))
    ]
    assert found == []


def _place(module: str) -> int:
    """The position in `ORDER` of a module's package: that of the longest listed name with which the module's name
    begins.
    """
    name = module.removeprefix("chalicelib.")
    fitting = [entry for entry in ORDER if name == entry or name.startswith(f"{entry}.")]
    assert fitting, f"expected a package of the list ORDER, got {name}: give it a place there"
    return ORDER.index(max(fitting, key=len))


def test_only_the_trigger_package_knows_the_kinds_of_leaves() -> None:
    """A module outside uses the methods of `Leaf`, so a new kind is one file in the package."""
    package = "chalicelib.core.triggers"
    kinds = {kind.__name__ for kind in LEAVES}
    classes = kinds | {"Leaf", "GatheringLeaf", "NestedLeaf", "TimedLeaf"}
    found = [
        f"{path.relative_to(ROOT)}:{line} knows {name}"
        for path in of_service()
        if not name_of(path).startswith(package)
        for line, name in [
            *((each.line, each.module.rpartition(".")[2]) for each in imports(path) if each.module.startswith(package)),
            *((node.lineno, node.attr) for node in nodes(path) if isinstance(node, ast.Attribute)),
        ]
        if name in kinds
    ]
    found += [
        f"{path.relative_to(ROOT)}:{node.lineno} tests the class {tested}"
        for path in of_service()
        if not name_of(path).startswith(package)
        for node in nodes(path)
        for tested in _tested(node)
        if tested.rpartition(".")[2] in classes
    ]
    assert found == [], "give `Leaf` a method that answers for every kind"


def test_only_the_trigger_package_compares_the_type_of_a_leaf() -> None:
    """A comparison of a leaf's ``type`` with a text is a test of its kind in another form."""
    kinds = {str(get_args(kind.model_fields["type"].annotation)[0]) for kind in LEAVES}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} compares {ast.unparse(node)}"
        for path in of_service()
        if not name_of(path).startswith("chalicelib.core.triggers")
        for node in nodes(path)
        if isinstance(node, ast.Compare) and _is_type(node.left)
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and each.value in kinds
    ]
    assert len(kinds) == len(LEAVES)
    assert found == [], "give `Leaf` a method that answers for every kind"


def _is_type(node: ast.AST) -> bool:
    """Whether an expression reads a ``type``: ``leaf.type``, ``leaf["type"]`` or ``leaf.get("type")``."""
    return (isinstance(node, ast.Attribute) and node.attr == "type") or any(
        isinstance(each, ast.Constant) and each.value == "type" for each in ast.walk(node)
    )


def _tested(node: ast.AST) -> Iterator[str]:
    """The classes that a call of ``isinstance``, or a ``case``, tests for."""
    if isinstance(node, ast.MatchClass):
        yield ast.unparse(node.cls)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        tests = (each for argument in node.args[1:] for each in ast.walk(argument))
        yield from (ast.unparse(each) for each in tests if isinstance(each, ast.Name | ast.Attribute))


def test_every_package_of_the_order_exists() -> None:
    names = {name_of(path).removeprefix("chalicelib.") for path in modules("chalicelib")}
    assert [entry for entry in ORDER if entry not in names] == []


def test_a_name_is_imported_from_the_module_that_defines_it() -> None:
    """No module re-exports names of another one, by ``import x as x`` or by ``__all__``."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("chalicelib",)
        for path in modules(folder)
        for node in nodes(path)
        if (isinstance(node, ast.alias) and node.asname == node.name)
        or (isinstance(node, ast.Name) and node.id == "__all__" and isinstance(node.ctx, ast.Store))
    ]
    assert found == []


def test_only_the_constraint_package_asks_for_the_kind_of_one() -> None:
    """A new kind is one file and one line. Other modules use its class variables and methods (C1-C16)."""
    kinds = {kind.__name__ for kind in CONSTRAINTS}
    found = [
        f"{path.relative_to(ROOT)}:{line} asks for {name}"
        for path in of_service()
        if not path.is_relative_to(ROOT / "chalicelib/core/constraints")
        for line, name in _asked_classes(tree(path))
        if name in kinds
    ]
    assert found == []


def test_only_the_limits_ask_for_the_kind_of_a_request() -> None:
    """Other modules use the attributes and methods of a request, so a new kind is one file and its statements."""
    homes = ("chalicelib/core/limits", "chalicelib/aws/tables")
    found = [
        f"{path.relative_to(ROOT)}:{line} asks for {name}"
        for path in of_service()
        if not any(path.is_relative_to(ROOT / home) for home in homes)
        for line, name in _asked_classes(tree(path))
        if name in ("Slots", "RateWindow", "Pace")
    ]
    assert found == []


def test_only_the_traits_know_the_kinds_of_jobs_and_runs() -> None:
    """Other modules ask for a trait (`core/states.py`), so a new kind is one line there."""
    found = [
        f"{path.relative_to(ROOT)}:{line} tests for {kind}"
        for path in of_service()
        if path != ROOT / "chalicelib/core/states.py"
        for line, subject, kind in _tested_kinds(tree(path), set(TRAITS))
        if subject not in ("event.kind", "ref.kind", "hold.kind")
    ]
    assert found == []


def test_only_their_classes_know_the_kinds_of_definitions() -> None:
    """Other steps of definitions call `flow/definitions/of_kind.py`, or ask to which kind one belongs."""
    homes = ("chalicelib/flow/definitions", "chalicelib/flow/dags", "chalicelib/web/routes")
    found = [
        f"{path.relative_to(ROOT)}:{line} tests for {kind}"
        for path in modules("chalicelib")
        if any(path.is_relative_to(ROOT / home) for home in homes)
        for line, subject, kind in _tested_kinds(tree(path), set(PARENTS))
        if subject not in ("", "use.kind")
    ]
    assert found == []


def test_a_test_for_a_kind_is_detected_in_each_of_its_forms() -> None:
    forms = """
if job.kind == "fire" or "retry" != kind: pass
if last.kind not in ("redrive", "other"): pass
REQUESTED = frozenset({"run_now", "backfill"})
match run.kind:
    case "gathering" | "detached":
        pass
"""
    assert sorted(kind for _, _, kind in _tested_kinds(ast.parse(forms), set(TRAITS))) == sorted(TRAITS)


def _tested_kinds(node: ast.AST, kinds: set[str]) -> Iterator[tuple[int, str, str]]:
    """Line, subject and kind of each text of ``kinds`` with which a kind is compared, or of which a collection is."""
    for each in ast.walk(node):
        parts: list[ast.AST] = []
        subject = ""
        if isinstance(each, ast.Compare):
            named = [part for part in (each.left, *each.comparators) if ast.unparse(part).rpartition(".")[2] == "kind"]
            parts = [each] if named else []
            subject = ast.unparse(named[0]) if named else ""
        elif isinstance(each, ast.Match):
            subject = ast.unparse(each.subject)
            parts = [case.pattern for case in each.cases] if subject.rpartition(".")[2] == "kind" else []
        elif isinstance(each, ast.Tuple | ast.List | ast.Set) and len(each.elts) > 1:
            texts = [part.value for part in each.elts if isinstance(part, ast.Constant)]
            parts = [each] if len(texts) == len(each.elts) and set(texts) <= kinds else []
        for part in parts:
            for text in ast.walk(part):
                if isinstance(text, ast.Constant) and text.value in kinds:
                    yield text.lineno, subject, text.value


def test_a_class_check_is_detected_in_each_of_its_forms() -> None:
    forms = """
isinstance(each, Rate)
isinstance(each, Load | module.Probe)
issubclass(kind, (Delay, Fresh))
match each:
    case Approval() | rules.Concurrency():
        pass
"""
    asked = ["Rate", "Load", "Probe", "Delay", "Fresh", "Approval", "Concurrency"]
    seen = [name for _, name in _asked_classes(ast.parse(forms)) if name not in ("module", "rules")]
    assert sorted(seen) == sorted(asked)


def _asked_classes(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The names of classes in ``isinstance``, ``issubclass`` and the patterns of ``match``."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            if each.func.id in ("isinstance", "issubclass"):
                yield from _class_names(each.args[1])
        elif isinstance(each, ast.MatchClass):
            yield from _class_names(each.cls)


def _class_names(node: ast.AST) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.lineno, each.attr
        elif isinstance(each, ast.Name):
            yield each.lineno, each.id


REASONS = {"reason", "why", "fired_by", "waited_for", "inherited"}


def _reads_of_reasons(tree: ast.Module) -> Iterator[int]:
    """The lines that compare, search, split or loop over the text of a reason, or use the parts of one."""
    for node in ast.walk(tree):
        inner: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            inner = [node.left, *node.comparators]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            inner = [node.value]  # a method of the text
        elif isinstance(node, ast.For | ast.comprehension):
            inner = [node.iter]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PATTERNS:
            inner = list(node.args)
        for each in inner:
            owner = each.value if isinstance(each, ast.Attribute) else None
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if isinstance(each, ast.Attribute) and name in REASONS and each.attr in ("text", "parts"):
                yield each.lineno


PATTERNS = ("match", "search", "fullmatch", "sub", "split", "findall", "finditer")


def test_no_module_reads_the_text_of_a_reason() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}" for path in of_service() for line in _reads_of_reasons(tree(path))]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "'a' in job.reason.text",
        "job.reason.text == 'a'",
        "decision.why.text.startswith('a')",
        "why.text in other",
        "run.fired_by.parts == ()",
        "[word for word in job.reason.text]",
        "PATTERN.search(record.reason.text)",
    ],
)
def test_each_way_to_read_the_text_of_a_reason_is_detected(code: str) -> None:
    assert list(_reads_of_reasons(ast.parse(code))) == [1]


def test_what_a_user_writes_in_a_clone_is_not_checked(tmp_path: Path) -> None:
    for name in ("sluice/a.py", "sluice/new.py", "hello/utils.py", "count.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for command in (["init", "--quiet"], ["add", "sluice/a.py"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert [path.name for path in _kept_in(tmp_path)] == ["a.py", "new.py"]


def test_lint_checks_only_what_git_keeps() -> None:
    """So the files of the README and the tutorial at the root of a clone are neither linted nor typed."""
    makefile = (ROOT / "Makefile").read_text()
    linted = re.findall(r"^(?:TYPED|LINTED) := (?:\$\(TYPED\) )?(.+)$", makefile, re.MULTILINE)
    tracked = {name.partition("/")[0] for name in _listed(ROOT, "--cached")}
    assert len(linted) == 2
    assert {name for names in linted for name in names.split()} <= tracked


def test_no_module_has_a_catch_all_name() -> None:
    drawers = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}
    assert [str(path.relative_to(ROOT)) for path in kept() if path.suffix == ".py" and path.stem in drawers] == []


def test_no_file_names_a_path_outside_the_checkout() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in kept()
        for number, line in enumerate(_text(path).splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert found == []


def _text(path: Path) -> str:
    content = path.read_bytes()
    return "" if b"\0" in content else content.decode(errors="replace")


# Words that decision 0046 and its successors replaced, each with the word in its place.
RETIRED = {
    "LINE": "LIMIT",
    "TURN": "ADMISSION",
    "FICKLE": "REVOCABLE",
    "WISHES": "REQUESTED",
    "FEW": "MAX_SINGLE, or another MIN_ or MAX_",
    "MOST_READ": "MAX_READ",
    "MOST_FIRES": "MAX_FIRES",
    "LEAST_TIMERS": "MIN_TIMERS",
    "NOBODY": "NO_WAITER",
    "Gate": "ScheduleState",
    "Ghost": "Duplicate",
    "News": "RunUpdate",
    "Road": "channel",
    "Standing": "UsedGrants, LeafState, EntryState or NodeStatus",
    "TakeOut": "DeleteJob",
    "TakePermit": "AcquirePermit",
    "gate_is": "expected_mode",
    "ghosts": "duplicates",
    "foreseen": "previewed",
    "foresee": "preview",
    "foretell": "preview",
    "iso_of": "iso_or_none",
    "owing": "unannounced",
    "rehearse": "dry_run",
    "rehearsal_view": "dry_run_view",
    "sized_object": "counted_object",
    "spell": "format, or type_of",
    "spelled": "short_duration",
    "stand": "evaluate, refresh or node_states",
    "take_in": "handle_notice, or ingest_status",
    "take_off": "drop_job",
    "_told": "what it is: _progress, _answer, _described",
    "waits_at": "queued_in",
}
# Files in which a word of the list has its plain sense, or tests a former name.
KEEPS = {
    "tests/faults/meetings/entry.py": {"FEW"},  # orders, not rows: up to this number they are tried one by one
}


def test_no_retired_word_comes_back_as_a_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}: now {RETIRED[name]}"
        for folder in ("chalicelib", "sluice", "infra", "tests", "benchmarks", "job_library", "jobs", "examples")
        for path in modules(folder)
        for line, name in _defined(tree(path))
        if name in RETIRED and name not in KEEPS.get(str(path.relative_to(ROOT)), ())
    ]
    assert found == []


def _defined(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that a module defines: functions, classes, arguments, variables and attributes."""
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.lineno, each.name
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.lineno, each.id
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.lineno, each.attr
        elif isinstance(each, ast.arg):
            yield each.lineno, each.arg


def test_no_test_has_a_name_of_more_than_60_characters() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in modules("tests")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and len(node.name) > 60
    ]
    assert found == []


def test_contributing_says_where_each_module_is_tested() -> None:
    """In a file of tests with its path and name, or in the places of the row that names its package."""
    places = _places_of_tests()
    missing = [
        str(path.relative_to(ROOT))
        for folder in ("chalicelib/core", "chalicelib/flow")
        for path in modules(folder)
        if path.stem != "__init__" and not _has_own_tests(path) and _package(path) not in places
    ]
    assert missing == [], "give it a file of tests, or its package a row in CONTRIBUTING.md"
    named = {place for found in places.values() for place in found}
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []


def _places_of_tests() -> dict[str, list[str]]:
    """The paths that the table of CONTRIBUTING.md names for each package."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("### Where the tests of a module are\n")[1].split("\n#")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    names = re.compile(r"`([^`]+)`")
    found = [(package, names.findall(places)) for packages, places in rows for package in names.findall(packages)]
    assert len(found) == len(dict(found)), "a package has one row"
    return dict(found)


def _package(path: Path) -> str:
    return path.parent.relative_to(ROOT / "chalicelib").as_posix()


def _has_own_tests(path: Path) -> bool:
    return any((ROOT / "tests" / _package(path)).glob(f"test_{path.stem}*.py"))
