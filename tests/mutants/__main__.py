"""`make mutants ONLY=jobs.check`: change one module of the core in many small ways; a test must fail each time.

    python -m tests.mutants [MODULE ...] [--minutes N] [--report]

mutmut makes the mutants and runs them. This file prepares a directory for it, keeps the results between calls, and
counts them. A mutant without a visible effect is listed in equivalent.toml, with the reason. The exit code is 0 when
every mutant was killed or explained, 1 when one survived, 2 for an unknown module.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

from chalicelib.core.constraints.registry import CONSTRAINTS

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".local" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
# The modules that decide about a job, and the tests of the core for each. Other tests call them, too. But the module's
# own tests must find each mutant.
_LIMITS = "limits/* jobs/limit_order jobs/facts jobs/conditions"
_CONSTRAINTS = "jobs/condition* jobs/judgement constraints/*"
_EVENTS = "events/* jobs/gather"
TESTS = {
    "jobs.check": "jobs/check* jobs/condition* jobs/judgement jobs/modes jobs/limit_order constraints/probes",
    "constraints.constraint": _CONSTRAINTS,
    **{kind.__module__.removeprefix("chalicelib.core."): _CONSTRAINTS for kind in CONSTRAINTS},
    "time.days": "time/days constraints/calendar",
    "jobs.claim": "jobs/claim* jobs/limit_order jobs/modes",
    "jobs.gather": "jobs/gather* jobs/judgement events/build events/correlation",
    "limits.permits": _LIMITS,
    "limits.blocks": _LIMITS,
    "triggers.tree": "triggers/triggers triggers/tree* triggers/leaves fires/elapsed definitions/documents",
    "events.build": _EVENTS,
    "events.partitions": _EVENTS,
    "events.values": _EVENTS + " backfills/plans",
    "events.versions": "events/versions",
    "events.manifests": "events/manifests",
    "targets.retries": "runs/launch* targets/delivery targets/backoff targets/retries",
    "fires.continued": "fires/continued",
    "fires.timer": "fires/timer* fires/carried_timer fires/elapsed fires/repeats schedules/pauses schedules/states",
    "runs.launch": "runs/launch* runs/complete* jobs/claims targets/delivery",
    "runs.complete": "runs/complete* jobs/claims",
    "schedules.closings": "schedules/closings",
    "schedules.effect": "schedules/states schedules/lifecycle*",
    "schedules.lifecycle": "schedules/*",
    "schedules.timer_step": "schedules/timer_step",
    "schedules.relative": "schedules/relative",
    "notices.alerts": "notices/*",
    "notices.deadlines": "notices/*",
    "system.sweep": "system/sweep",
    # Modules of other layers, with tests of these: their names are longer by the layer.
    "flow.deploy.uploaded": "deploy/uploaded*",
    "flow.ingest.snapshots": "ingest/snapshots* tests/acceptance/triggers/test_iceberg.py tests/web/test_tables.py",
    "flow.deliveries.appointments": "deliveries/appointments deliveries/send_* limits/*",
    "flow.deliveries.send": "deliveries/send* tests/faults/test_lapsed_leases.py",
    "flow.deliveries.leases": "deliveries/leases",
    "flow.system.sweep": "system/sweep*",
    "operations.archive.export": "archive/export*",
    "operations.archive.give_up": "archive/giv*",
    "operations.rules.arriving": "rules/* archive/*",
    "operations.rules.owner": "rules/* archive/open_outboxes archive/giv*",
}
MODULES = list(TESTS)
# The code of each layer.
FOLDERS = {"core": "chalicelib/core", "flow": "chalicelib/flow", "operations": "sluice/operations"}
LINKED = ["chalicelib", "tests", "app.py", "examples", "infra", "jobs", "sluice"]
SETTINGS = """
[tool.mutmut]
source_paths = ["{source}"]
only_mutate = ["{path}"]
also_copy = {copied}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = {arguments}
timeout_constant = 5.0
# A mutant that never ends is stopped after so many times what its tests take; by default it is 15 times.
timeout_multiplier = 4.0
"""


@dataclass(frozen=True)
class Mutant:
    """One change of one function. ``was`` and ``now``: the lines that differ, without their indentation."""

    name: str
    status: str
    function: str
    was: str
    now: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.function, self.was, self.now


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"out of {', '.join(MODULES)}; all by default")
    parser.add_argument("--minutes", type=float, help="stop after so long; the next call goes on from there")
    parser.add_argument("--report", action="store_true", help="only count what earlier calls have found")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.modules if name not in MODULES]:
        print(f"mutants: expected modules out of {', '.join(MODULES)}, got {', '.join(unknown)}", file=sys.stderr)
        return 2
    survived = 0
    for module in given.modules or MODULES:
        if not given.report:
            run(module, given.minutes)
        survived += report(module)
    return 1 if survived else 0


def path_of(module: str) -> str:
    """The path of a module, in the repository and in the copy that mutmut changes."""
    layer = layer_of(module)
    return f"{FOLDERS[layer]}/{module.removeprefix(f'{layer}.').replace('.', '/')}.py"


def layer_of(module: str) -> str:
    """The layer of a module, which is also that of its tests."""
    layer = module.partition(".")[0]
    return layer if layer in FOLDERS else "core"


def source_of(module: str) -> str:
    """The folder at the root in which a module lies: mutmut copies it apart from the others."""
    return path_of(module).partition("/")[0]


def own_tests(module: str) -> dict[str, list[Path]]:
    """The tests of a module, by their names in `TESTS`. Those of its own layer have a short name there."""
    found = {}
    for name in TESTS[module].split():
        package, _, stem = name.partition("/")
        path = name if package == "tests" else f"tests/{layer_of(module)}/{package}/test_{stem}.py"
        found[name] = list(ROOT.glob(path))
    return found


def run(module: str, minutes: float | None) -> None:
    """Runs mutmut in a separate directory, where the sources are links and its results stay."""
    work = WORK / module
    work.mkdir(parents=True, exist_ok=True)
    for name in LINKED:
        if not (work / name).is_symlink():
            (work / name).symlink_to(ROOT / name)
    chosen = sorted({path for found in own_tests(module).values() for path in found})
    settings = SETTINGS.format(
        path=path_of(module),
        source=source_of(module),
        copied=json.dumps([name for name in LINKED if name not in ("tests", source_of(module))]),
        tests=json.dumps([str(path.relative_to(ROOT)) for path in chosen]),
        arguments=json.dumps(["-m", "not cloud and not spark and not long", "-p", "no:cacheprovider"]),
    )
    (work / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings)
    _bring_copies_up_to_date(work, module)
    _forget_what_other_tests_said(work, module, chosen)
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1"]
    # It shows each mutant as it runs; the log is for failures.
    with (work / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=os.environ | {"SLUICE_TEST_EXAMPLES": "2"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_can_be_stopped,
        )
        try:
            process.wait(minutes * 60 if minutes else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
        else:
            if process.returncode:
                raise SystemExit(f"mutants: mutmut failed, its output is in {work / 'log'}")


def _can_be_stopped() -> None:
    """Restore SIGINT, with which mutmut is stopped: a shell lets background commands ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _bring_copies_up_to_date(work: Path, module: str) -> None:
    """mutmut copies a source once; changed sources are copied again."""
    for source in (ROOT / source_of(module)).rglob("*.py"):
        copy = work / "mutants" / source.relative_to(ROOT)
        changed = copy.exists() and copy.read_bytes() != source.read_bytes()
        if changed and str(source.relative_to(ROOT)) != path_of(module):
            shutil.copy2(source, copy)


def _forget_what_other_tests_said(work: Path, module: str, chosen: list[Path]) -> None:
    """After a change of a test, survivors are tried again, and mutmut finds out again which test calls what."""
    digest = hashlib.sha256()
    for path in sorted({*chosen, *(ROOT / "tests" / layer_of(module)).rglob("*.py")}):
        digest.update(path.read_bytes())
    stamp, meta = work / "tests.sha256", work / "mutants" / f"{path_of(module)}.meta"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    shutil.rmtree(work / "mutants" / "tests", ignore_errors=True)
    (work / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    if meta.exists():
        known = json.loads(meta.read_text())
        codes = known["exit_code_by_key"]
        known["exit_code_by_key"] = {
            name: code if status_by_exit_code[code] == "killed" else None for name, code in codes.items()
        }
        meta.write_text(json.dumps(known))
    stamp.write_text(digest.hexdigest())


def report(module: str) -> int:
    """Prints the score of a module and its survivors. Returns the number of survivors without an explanation."""
    found = list(mutants(module))
    listed = {(each["function"], each["was"], each["now"]) for each in explained().get(module, [])}
    unkilled = [each for each in found if each.status not in ("killed", "timeout", "not checked")]
    equivalent = [each for each in unkilled if each.key in listed]
    open_ = [each for each in unkilled if each.key not in listed]
    tally = Counter(each.status for each in found)
    checked = len(found) - tally["not checked"] - len(equivalent)
    killed = tally["killed"] + tally["timeout"]
    for each in open_:
        if each.status != "no tests":
            print(f"{each.status}: {each.name}\n    - {each.was}\n    + {each.now}")
    for function, count in Counter(each.function for each in open_ if each.status == "no tests").items():
        print(f"no test of its own calls {module}.{function}, which has {count} mutants")
    stale = set() if tally["not checked"] else listed - {each.key for each in found}
    for function, was, _ in sorted(stale):
        print(f"equivalent.toml: no mutant of {module}.{function} changes {was!r} any more")
    score = f"{100 * killed / checked:.1f} %" if checked else "-"
    unchecked = f", {tally['not checked']} not checked yet" if tally["not checked"] else ""
    print(f"{module}: {killed} of {checked} killed, {score}; {len(equivalent)} equivalent{unchecked}")
    return len(open_) + len(stale)


def explained() -> dict[str, list[dict[str, str]]]:
    return tomllib.loads(EQUIVALENT.read_text())


def mutants(module: str) -> Iterator[Mutant]:
    path = path_of(module)
    meta = WORK / module / "mutants" / f"{path}.meta"
    if not meta.exists():
        return
    with contextlib.chdir(WORK / module):
        for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
            function = name.rpartition(".")[2].partition("__mutmut_")[0].removeprefix("x_").replace("ǁ", ".")
            status = status_by_exit_code[code]
            settled = status in ("killed", "timeout", "not checked")
            was, now = ("", "") if settled else _lines(get_diff_for_mutant(name, path=path))
            yield Mutant(name, status, function.removeprefix("x."), was, now)


def _lines(diff: str) -> tuple[str, str]:
    changed = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    was, now = (" ".join(line[1:].strip() for line in changed if line.startswith(sign)) for sign in "-+")
    return was, now


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
