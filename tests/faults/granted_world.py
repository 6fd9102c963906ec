"""A random world whose schedules use a policy and a workflow of another namespace, which grants them and takes the
grants back at any time (O9)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer
from chalicelib.flow import grants
from tests.faults import dying
from tests.faults.random_world import RETRIED, RandomWorld

OWNER = "lake"
WHAT: tuple[dict[str, Any], ...] = (
    {},
    {"run": ["core.clean"]},
    {"policies": ["calm"]},
    {"run": ["*"], "policies": ["*"]},
)


class GrantedWorld(RandomWorld):
    def __init__(self, schedules: dict[str, Any], seed: int) -> None:
        super().__init__(schedules, seed)
        self.ports = replace(self.ports, settings=replace(self.ports.settings, authorization="enforce"))
        self.deploy({"workflows": {"clean": RETRIED}, "policies": dying.POLICIES}, OWNER, "core")
        self.policies = ["demo.calm", f"{OWNER}.calm"]
        self._grant_all()
        for name, document in self.documents.items():
            foreign = {**document, "policy": f"{OWNER}.calm"} if "policy" in document or name == "a" else {**document}
            self.documents[name] = {**foreign, "workflow": f"{OWNER}.core.clean"} if name == "b" else foreign
            # A foreign workflow, or a policy, may not fit the rest of a random document: then it stays as it was.
            with suppress(SluiceError):
                self.put(name, self.documents[name])
                continue
            self.documents[name] = document

    def truthful_emr(self) -> None:
        """Check in addition that no run is started without the grants on which its claim relied."""
        super().truthful_emr()
        start = self.targets.emr.start

        def starting(run: Run, context: Any) -> Answer:
            missing = self.weather.undisturbed(lambda: grants.of_run(self.ports, run).missing)
            assert missing == () or run.unknown_answer, f"{run} is started without grants: {missing}"
            return start(run, context)

        self.targets.emr.start = starting  # type: ignore[method-assign]

    def changes_grants(self, number: int) -> None:
        what = WHAT[number]
        document = {"grants": [{"to": "demo", **what}] if what else []}
        self.people(lambda: self.grant(OWNER, document))

    def rest(self) -> None:
        self.points.die_after, self.wakes.honest = None, True
        self.weather.clears_up()
        self._grant_all()
        super().rest()

    def _grant_all(self) -> None:
        self.grant(OWNER, {"grants": [{"to": "demo", **WHAT[-1]}]})
