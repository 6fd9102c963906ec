"""Play attackers against the app: `python -m tests.attacker.play --requests 100000 --seed 1`.

An episode is a number of steps from the same beginning, and its name is the seed of each step. If a rule breaks, the
steps that are not needed for it are left out, and a command is printed that plays the rest again:
`--episode 0-1-7 --steps 3,41`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.attacker import cast
from tests.attacker.draw import Draw, Known
from tests.attacker.oracle import RULES, Broken, Oracle
from tests.attacker.stage import Answer, Asked, Changed, Stage, installed

STEPS = 60  # of an episode
ODD = (0.08, 0.25, 0.5)  # shares of values that are foreign or odd; each episode has one


class Found(AssertionError):
    """A broken rule, with the command that plays it again."""

    def __init__(self, broken: Broken, episode: str, steps: Sequence[int], asked: object) -> None:
        numbers = ",".join(map(str, steps))
        again = f"python -m tests.attacker.play --episode {episode} --steps {numbers}"
        super().__init__(f"{broken}\n{asked}\nplay it again: {again}")
        self.rule, self.steps = broken.rule, list(steps)


@dataclass
class Tally:
    """How many requests were answered, by class of status, by operation, and by class for the signer's right."""

    answers: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    twins: int = 0
    started: int = 0

    @property
    def requests(self) -> int:
        return self.answers.total()

    def __str__(self) -> str:
        classes = ", ".join(f"{count:,} {name}" for name, count in sorted(self.answers.items()))
        whole = f"{self.requests:,} requests to {len(self.operations)} operations: {classes}"
        return f"{whole}; {self.twins:,} were repeated with names that nothing has; {self.started:,} runs started"


class Episode:
    """The steps of one seed on a stage."""

    def __init__(self, stage: Stage, name: str, rules: frozenset[str], tally: Tally) -> None:
        stage.begin()
        self.stage, self.name, self.tally = stage, name, tally
        self.oracle = Oracle(stage, rules)
        self.known = Known(ids_of(stage))
        self.odd = Random(f"{name}/odd").choice(ODD)
        self.asked: object = None

    def step(self, number: int) -> None:
        rng = Random(f"{self.name}/{number}")
        what = rng.random()
        if what < 0.03:
            self._object(rng)
        elif what < 0.05:
            self.asked = "all runs end"
            self.stage.world.finish()
            self.stage.world.settle()
        elif what < 0.06:
            self.asked = "a minute passes"
            self.stage.world.pass_by("1m")
        else:
            self._request(rng)

    def _request(self, rng: Random) -> None:
        ours, theirs, third = self.stage.spaces
        draw = Draw(rng, (ours, theirs, third), self.known, self.odd)
        self.asked = asked = draw.request()
        with self.stage.notes() as changes:
            answer = self.stage.send(asked)
        self.tally.answers[f"{answer.status // 100}xx"] += 1
        self.tally.operations[f"{asked.method} {asked.resource}"] += 1
        self.oracle.judge(asked, answer, changes)
        self._learn(asked, answer, changes)
        if answer.status >= 400:
            self._twin(rng, asked, answer)
        elif changes:
            self._follow(asked)

    def _follow(self, asked: Asked) -> None:
        with self.stage.notes() as changes:
            started = self.stage.settled()
        self.tally.started += len(started)
        self.oracle.judge_starts(asked, started, changes)
        for change in changes:
            _keep(self.known.ids, change)

    def _twin(self, rng: Random, asked: Asked, answer: Answer) -> None:
        """Send a refused request again, with names that nothing has for those that its signer may not know."""
        changed = self.oracle.unknown_names(asked) if rng.random() < 0.5 else None
        if changed is None:
            return
        self.tally.twins += 1
        with self.stage.notes():
            other = self.stage.send(asked.with_texts(changed))
        self.oracle.same(answer, other, changed)

    def _object(self, rng: Random) -> None:
        """An object arrives in the folder of a dataset, as the job that writes it would put it."""
        space = rng.choice(self.stage.spaces[:2])
        dataset = space.word(rng.choice(("feed", "shared", "vault", "new")))
        key = self.stage.partition_of(dataset, rng.randrange(1, 29))
        self.asked = f"an object arrives: {key}"
        with self.stage.notes() as changes:
            self.stage.world.upload(key, cast.BUCKET)
        self.oracle.judge_object(cast.BUCKET, key, changes)
        self.stage.world.settle()

    def _learn(self, asked: Asked, answer: Answer, changes: list[Changed]) -> None:
        for change in changes:
            _keep(self.known.ids, change)
        if answer.status >= 300:
            return
        schedule = ".".join(asked.parameters.get(part, "") for part in ("ns", "app", "name"))
        if asked.method != "GET" and asked.resource.endswith(("/schedules/{name}", "/run", "/enable")):
            self.known.arranged = [*self.known.arranged, (schedule, asked.person.member)][-5:]
        if '"next_cursor": "' in answer.text:
            self.known.cursors.append((asked.resource, answer.content["next_cursor"]))
        if asked.resource.endswith("/claim"):
            for lease in answer.content["leases"]:
                self.known.ids.setdefault("lease_id", {}).setdefault(
                    asked.parameters["pool"].partition(".")[0], []
                ).append(lease["lease"])


def ids_of(stage: Stage) -> dict[str, dict[str, list[str]]]:
    """The ids that exist, by the parameter of a path and the namespace."""
    found: dict[str, dict[str, list[str]]] = {}
    for table, item in stage.tables.rows():
        _keep(found, Changed(table, (item["pk"]["S"], item["sk"]["S"]), None, item))
    for lease, space in stage.leases.items():
        found.setdefault("lease_id", {}).setdefault(space, []).append(lease)
    for app, upload in stage.world.payloads.uploads:
        found.setdefault("upload", {}).setdefault(app.partition(".")[0], []).append(upload)
    return found


def _keep(found: dict[str, dict[str, list[str]]], change: Changed) -> None:
    """Keep the id of a row."""
    (pk, sk), item = change.key, change.after
    if item is None:
        return
    head, _, rest = pk.partition("#")
    kinds: list[tuple[str, str, str]] = []
    if head == "RUN" and sk.startswith(("A#", "RECORD")):
        kinds = [("run_id", rest, rest), ("dag_run", rest, rest)] if "~." in rest else [("run_id", rest, rest)]
    elif head == "RUN" and sk == "FIRE":
        kinds = [("fire_id", rest, rest)]
    elif head in ("BACKFILL", "REPROCESS"):
        kinds = [(f"{head.lower()}_id", rest, sk)]
    elif head == "DEAD":
        kinds = [("dead_letter", rest, sk.partition("#")[0])]
    elif head == "DEPLOYMENT":
        kinds = [("upload", rest, sk)]
    elif change.table == "JobsTable" and "job_id" in item and "@" in pk:
        kinds = [("job_id", pk, item["job_id"]["S"])]
    for kind, owner, name in kinds:
        ids = found.setdefault(kind, {}).setdefault(owner.partition(".")[0], [])
        if name not in ids:
            ids.append(name)


def play_episode(stage: Stage, name: str, rules: frozenset[str], tally: Tally, steps: Collection[int]) -> None:
    """Raises `Found` for the first rule that breaks, with the fewest steps that were found to break it."""
    episode = Episode(stage, name, rules, tally)
    done: list[int] = []
    for number in steps:
        done.append(number)
        try:
            episode.step(number)
        except Broken as broken:
            kept = _fewest(stage, name, done, broken.rule)
            raise Found(broken, name, kept, episode.asked) from None


def _fewest(stage: Stage, name: str, steps: list[int], rule: str) -> list[int]:
    """The steps without those that are not needed to break the rule at the last one."""

    def breaks(left: list[int]) -> bool:
        again = Episode(stage, name, frozenset({rule}), Tally())
        for number in left:
            try:
                again.step(number)
            except Broken:
                return number == left[-1]
        return False

    part = len(steps) // 2
    while part:
        at = 0
        while at < len(steps) - 1:
            shorter = [*steps[:at], *steps[min(at + part, len(steps) - 1) :]]
            if breaks(shorter):
                steps = shorter
            else:
                at += part
        part //= 2
    return steps


def play(stages: list[Stage], seed: int, requests: int, rules: frozenset[str] = frozenset(RULES)) -> Tally:
    """Play episodes until so many requests are answered. Raises `Found` for the first rule that breaks."""
    tally, number = Tally(), 0
    while tally.requests < requests:
        stage = number % len(stages)
        play_episode(stages[stage], f"{stage}-{seed}-{number}", rules, tally, range(STEPS))
        number += 1
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episode", help="one episode, by the name that a failure printed")
    parser.add_argument("--steps", help="its steps, separated by commas")
    parser.add_argument("--without", default="", help="rules to leave out, separated by commas")
    given = parser.parse_args()
    rules = frozenset(RULES) - set(given.without.split(","))
    with pytest.MonkeyPatch.context() as patch:
        try:
            installed(patch)
            if given.episode:
                stage = Stage(cast.CASTS[int(given.episode.partition("-")[0])])
                steps = list(map(int, given.steps.split(","))) if given.steps else range(STEPS)
                play_episode(stage, given.episode, rules, Tally(), steps)
            else:
                stages = [Stage(spaces) for spaces in cast.CASTS]
                print(play(stages, given.seed, given.requests, rules))
        except Found as found:
            print(found, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
