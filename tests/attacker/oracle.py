"""What may be seen, changed, started, stopped and read: computed from the access documents, the grants and the rules of
docs/security.md, without the code that it judges.

Each rule has a name. `play.py` plays with a set of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from tests.attacker import cast
from tests.attacker.cast import Person, Space
from tests.attacker.stage import Answer, Asked, Changed, Stage
from tests.fuzz.requests import OPERATIONS

# The rules, each by what its breach means.
RULES = {
    "failed": "the request fails with 500",
    "undocumented": "the answer is none that the OpenAPI document describes",
    "allowed": "the signer lacks the right that the operation needs",
    "hidden": "the signer has no role there, and learns more than of what does not exist",
    "leak": "the answer names what the signer may not read",
    "existence": "another answer than for a name that nothing has",
    "wrote": "a request that was refused, or that reads, changed a row",
    "foreign row": "a row of another namespace changed",
    "kind of row": "a row of a kind changed that needs another right",
    "grant": "a document was accepted that names what another namespace does not lend",
    "lease": "a lease was used by another user or role than claimed it",
    "slowed": "a request made more steps of computation than any may",
    "foreign start": "a run started that the signer may not start",
    "foreign end": "work of another namespace was stopped",
    "cursor": "a cursor of another list was taken",
    "prefix": "the folders of two namespaces lie in one another",
    "partition": "an object became a partition of a dataset that did not have its folder first",
    "arrangement": "a person approved what he arranged",
    "queue": "a queue that is not one of the own account was accepted",
    "reach": "a queue was accepted whose name does not hold the own namespace",
    "code": "a Spark property loads code from elsewhere than the entry points",
}


MOST_STEPS = 2_500_000  # about a second of CPU


class Broken(AssertionError):
    """A rule that did not hold."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"{rule}: {RULES[rule]}: {why}")
        self.rule = rule


@cache
def operation_of(method: str, resource: str) -> Mapping[str, Any] | None:
    found = [each for verb, path, each in OPERATIONS if (verb, path) == (method, resource)]
    return found[0] if found else None


# Spark properties, by their documentation, whose value names classes, files or commands that Spark then loads or runs.
LOADING = re.compile(
    r"spark\.(jars(\.packages|\.repositories|\.ivy\w*)?|files|archives|plugins|submit\.pyFiles|extraListeners|serializer"
    r"|repl\.class\.uri|sql\.extensions|sql\.catalog\..+|sql\.hive\.metastore\.jars(\.path)?|kryo\.registrator"
    r"|(driver|executor)\.(extra\w+|default\w+|resource\..+\.discoveryScript)|hadoop\..+\.impl)"
)
# What a field names: the kinds of grants that lend it, and the points of its full name.
_LENT = {"workflow": ("run", "follow"), "dataset": ("datasets",), "pool": ("pools",), "policy": ("policies",)}
_POINTS = {"workflow": 2, "dataset": 1, "pool": 1, "policy": 1}
_HINT = re.compile(r'"hint": (null|"([^"\\]|\\.)*")')
OWN_QUEUE = re.compile(
    r"https://(sqs|sqs-fips)\.[a-z0-9-]+\.(amazonaws\.com|amazonaws\.com\.cn|api\.aws)/(?P<a>\d{12})/[\w.-]+"
    r"|https://([a-z0-9-]+\.)?queue\.amazonaws\.com/(?P<b>\d{12})/[\w.-]+"
    r"|https://vpce-[a-z0-9-]+\.sqs\.[a-z0-9-]+\.vpce\.amazonaws\.com/(?P<c>\d{12})/[\w.-]+"
)


@dataclass
class Memory:
    """What the oracle remembers of an episode."""

    said: dict[str, str] = field(default_factory=dict)  # by namespace: what its members wrote into it
    arranged: dict[str, dict[str, str]] = field(default_factory=dict)  # schedule -> how -> by which user or role
    requested: dict[str, set[str]] = field(default_factory=dict)  # job -> by which users or roles
    folders: list[tuple[str, str, str]] = field(default_factory=list)  # bucket, prefix, namespace: the first one first
    cursors: dict[str, str] = field(default_factory=dict)  # cursor -> the list that it belongs to
    lent: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # owner, namespace -> words
    leases: dict[str, str] = field(default_factory=dict)  # lease -> the user or role that claimed it


class Oracle:
    def __init__(self, stage: Stage, rules: frozenset[str]) -> None:
        self.stage, self.rules = stage, rules
        self.spaces = stage.spaces
        self.memory = Memory(said=dict(stage.said))
        self._read: dict[int, tuple[Any, dict[str, Any]]] = {}  # items never change, so each is read once
        for _, item in stage.tables.rows():
            if item["sk"]["S"].startswith("PREFIX#"):
                self._registered(item)
        for owner in self.spaces:
            for space in self.spaces:
                self._lent_to(owner, space)

    def judge(self, asked: Asked, answer: Answer, changes: Sequence[Changed]) -> None:
        """Raise `Broken` for an answer, or for changes within the request, that break a rule."""
        operation = operation_of(asked.method, asked.resource)
        refused = answer.status >= 400
        self._answer(asked, answer, operation)
        self._leak(asked, answer)
        self._check("slowed", self.stage.steps <= MOST_STEPS, f"{self.stage.steps:,} steps")
        if refused or asked.method == "GET" or operation is None:
            self._wrote_nothing(asked, changes)
        if operation is None:
            self._check("allowed", refused, f"no such route, answered {answer.status}")
            return
        if not refused:
            self._allowed(asked, operation)
            self._cursor(asked)
            self._documents(asked, answer)
            self._rows(asked, operation, changes)
            self._kinds(asked, changes)
            self._lease(asked, answer)
            self._folders(changes)
            self._approval(asked, operation, answer)
            self._note(asked, operation, answer, changes)
        self._keep_cursor(asked, answer)

    def judge_starts(self, asked: Asked, started: Sequence[str], changes: Sequence[Changed]) -> None:
        """Judge what follows from a request that was accepted, once everything has settled."""
        for run_id in started:
            self._check("foreign start", self._may_start(asked, run_id), f"{run_id} started")
        self._stopped(asked, changes)

    def judge_object(self, bucket: str, key: str, changes: Sequence[Changed]) -> None:
        """Judge the partition that an object became."""
        owner = next(
            (space for place, prefix, space in self.memory.folders if place == bucket and key.startswith(prefix)), None
        )
        for change in changes:
            if (
                change.key[0].startswith("DATASET#")
                and change.key[1].startswith("PARTITION#")
                and change.before is None
            ):
                got = change.key[0].removeprefix("DATASET#")
                self._check("partition", _space_of(got) == owner, f"{bucket}/{key} of {owner} became one of {got}")

    def _check(self, rule: str, holds: bool, why: str) -> None:
        if rule in self.rules and not holds:
            raise Broken(rule, why)

    # -- who may do what -------------------------------------------------------------------------------------------

    def roles(self, person: Person, space: str) -> list[Mapping[str, Any]]:
        """The members of a namespace, as its access document lists them, that a person is."""
        return _members(self._document("ACCESS", space), person)

    def rights(self, person: Person, space: str) -> set[str]:
        return {right for each in self.roles(person, space) for name in each["roles"] for right in cast.RIGHTS[name]}

    def rights_before(self, person: Person, space: str, changes: Sequence[Changed]) -> set[str]:
        """The rights before a request, which may have changed the access document itself."""
        before = next((each.before for each in changes if each.key == ("ACCESS", space)), None)
        if before is None:
            return self.rights(person, space)
        return {
            right
            for each in _members(self._plain(before)["document"], person)
            for name in each["roles"]
            for right in cast.RIGHTS[name]
        }

    def _document(self, kind: str, space: str) -> Mapping[str, Any]:
        item = self.stage.tables.item("CatalogTable", kind, space)
        found: Mapping[str, Any] = self._plain(item)["document"] if item is not None else {}
        return found

    def _plain(self, item: Mapping[str, Any]) -> dict[str, Any]:
        if id(item) not in self._read:
            self._read[id(item)] = (item, _plain(item))
        return self._read[id(item)][1]

    def grants(self, owner: str, to: str) -> list[Mapping[str, Any]]:
        return [each for each in self._document("GRANTS", owner).get("grants", ()) if each["to"] == to]

    def _place(self, asked: Asked) -> str | None:
        """The namespace of the path of a request; None for a path without one."""
        given = asked.parameters
        if "lease_id" in given:
            return self._space_of_lease(given["lease_id"])
        found = next((given[name] for name in ("ns", "job_id", "run_id", "fire_id", "pool") if name in given), None)
        return None if found is None else found.partition(".")[0]

    def _space_of_lease(self, lease: str) -> str:
        """The namespace of the pool of a lease: that of the workflow of its run."""
        for space in self.spaces:
            if lease.startswith(f"{space.name}."):
                run_id = lease.rsplit("-", 3)[0]
                workflow = self._workflow_of(run_id)
                return _space_of(workflow) if workflow else space.name
        return lease.partition(".")[0]

    def _workflow_of(self, run_id: str) -> str | None:
        for table in ("RunsTable", "JobsTable"):
            for _, item in self._rows_of(table, run_id):
                if "workflow" in item:
                    return str(item["workflow"]["S"])
        return None

    def _rows_of(self, table: str, run_id: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, item in self.stage.tables.rows():
            if name == table and (item["pk"]["S"] == f"RUN#{run_id}" or item.get("job_id", {}).get("S") == run_id):
                yield name, item

    def _may(self, asked: Asked, operation: Mapping[str, Any]) -> bool:
        needs, name, person = operation["x-needs"], operation["operationId"], asked.person
        if person.arn is None:
            return False
        administers = person.member == cast.role("platform")
        if name in ("put_allowed", "put_quotas", "list_audit_of_all"):
            return administers
        if needs == "signed":
            return True
        place = self._place(asked) or ""
        if needs in self._limited_rights(asked, place):
            return True
        return needs in ("read", "approve") and "job_id" in asked.parameters and self._approves(asked, place)

    def _limited_rights(self, asked: Asked, place: str) -> set[str]:
        """The rights in a namespace, without those of producers and workers whose limits the request exceeds."""
        found: set[str] = set()
        for each in self.roles(asked.person, place):
            for name in each["roles"]:
                if name == "worker" and each.get("pools") and self._pool(asked) not in each["pools"]:
                    continue
                if name == "producer" and not self._may_produce(asked, each):
                    continue
                found |= cast.RIGHTS[name]
        return found

    def _pool(self, asked: Asked) -> str | None:
        if "pool" in asked.parameters:
            return asked.parameters["pool"].partition(".")[2]
        return next(
            (space.word("etl") for space in self.spaces if space.mark in asked.parameters.get("lease_id", "")), None
        )

    def _may_produce(self, asked: Asked, member: Mapping[str, Any]) -> bool:
        events, datasets = tuple(member.get("events", ())), member.get("datasets", ())
        if not events and not datasets:
            return True
        if asked.resource.endswith("/events"):
            return all(
                str(each.get("type")).startswith(events) for each in json.loads(asked.body or "{}").get("events", ())
            )
        return asked.parameters.get("name") in datasets

    def _approves(self, asked: Asked, place: str) -> bool:
        """Whether the person approves in the namespace of the job's workflow, which asks for an approval."""
        schedule = ".".join(asked.parameters["job_id"].split(".")[:3])
        workflow = self._definition(schedule).get("workflow", "")
        return _space_of(workflow) != place and "approve" in self.rights(asked.person, _space_of(workflow))

    def _definition(self, schedule: str) -> Mapping[str, Any]:
        """The present document of a schedule."""
        state = self.stage.tables.item("CatalogTable", f"SCHEDULE#{schedule}", "STATE")
        if state is None:
            return {}
        number = int(self._plain(state)["version"])
        row = self.stage.tables.item("CatalogTable", f"SCHEDULE#{schedule}", f"VERSION#{number:010d}")
        found: Mapping[str, Any] = self._plain(row)["definition"] if row is not None else {}
        return found

    # -- the rules of an answer ------------------------------------------------------------------------------------

    def _answer(self, asked: Asked, answer: Answer, operation: Mapping[str, Any] | None) -> None:
        self._check("failed", answer.status < 500, f"{answer.status} {answer.text[:500]}")
        text = answer.text
        if answer.status >= 400:
            known = answer.text and set(answer.content.get("error", {})) >= {"code", "message", "field", "hint"}
            self._check("undocumented", bool(known), f"{answer.status} {text[:300]}")
            place = self._place(asked)
            unsigned = asked.person.arn is None
            if operation is not None and place is not None and not unsigned and not self.roles(asked.person, place):
                shown = answer.status in (400, 404) or self._may(asked, operation)
                self._check("hidden", shown, f"{answer.status} {text[:300]}")
        elif operation is not None:
            self._check("undocumented", str(answer.status) in operation["responses"], f"{answer.status}")
        for name, value in answer.headers.items():
            self._check("undocumented", str(value).isprintable(), f"the header {name} is {value!r}")

    def _allowed(self, asked: Asked, operation: Mapping[str, Any]) -> None:
        self._check("allowed", self._may(asked, operation), f"{operation['operationId']} needs {operation['x-needs']}")

    def _leak(self, asked: Asked, answer: Answer) -> None:
        told = f"{answer.text}\n{json.dumps(dict(answer.headers))}\n{_opened(answer)}"
        if asked.resource == "/v1/openapi.json":
            return
        said = f"{asked.said}\n{asked.person.arn}"
        for space in self.spaces:
            if "read" in self.rights(asked.person, space.name) or self.roles(asked.person, space.name):
                continue
            lent, known = self._lent(space, asked.person), self._said_by(asked.person)
            if lent or asked.resource.endswith("/audit"):
                lent |= _people_of(space)
            lent |= self._asked_to_approve(space, asked.person)
            for word in set(re.findall(rf"[A-Za-z0-9_-]*{space.mark}[A-Za-z0-9_-]*", told)):
                fine = word in said or word in lent or word in known or self._is_of_job(asked)
                self._check("leak", fine, f"{word} of {space.name} in {_around(told, word)}")
            if not self._knows(asked.person, space) and space.name not in said:
                named = re.search(rf"(?<![\w-]){re.escape(space.name)}(?![\w-])", told)
                self._check("leak", named is None, f"the namespace {space.name} in {_around(told, space.name)}")

    def _is_of_job(self, asked: Asked) -> bool:
        """Whether a request is about a job that the person may approve, because its workflow asks for it."""
        return "job_id" in asked.parameters and self._approves(asked, self._place(asked) or "")

    def _lent(self, owner: Space, person: Person) -> set[str]:
        """The words of what a namespace lends, or has lent, to a namespace in which a person has a role."""
        found: set[str] = set()
        for space in self.spaces:
            if self.roles(person, space.name):
                found |= self._lent_to(owner, space)
        return found

    def _lent_to(self, owner: Space, space: Space) -> set[str]:
        known = self.memory.lent.setdefault((owner.name, space.name), set())
        for each in self.grants(owner.name, space.name):
            names = [name for kind, names in each.items() if kind != "to" for name in names]
            known |= {owner.app, *(part for name in names for part in name.split("."))}
            known |= {word for name in each.get("run", ()) for word in self._target_words(owner, name)}
        return known

    def _asked_to_approve(self, space: Space, person: Person) -> set[str]:
        """The words of people of a namespace whom a workflow asks to approve that another one lends: who may run the
        workflow has to know whom to ask."""
        lends = [
            (owner, name)
            for owner in self.spaces
            for borrower in self.spaces
            if self.roles(person, borrower.name)
            for each in self.grants(owner.name, borrower.name)
            for name in each.get("run", ())
        ]
        found = [self._workflow(owner, name).get("approval") for owner, name in lends]
        return _words_of(space, found)

    def _target_words(self, owner: Space, name: str) -> set[str]:
        """The words in the target of a workflow: a run of a workflow that is lent shows its target."""
        return _words_of(owner, [self._workflow(owner, name).get("target"), cast.spark(owner)])

    def _workflow(self, owner: Space, name: str) -> Mapping[str, Any]:
        """The stored document of a workflow; empty for an unknown one."""
        app, _, short = name.rpartition(".")
        item = self.stage.tables.item("CatalogTable", f"APP#{owner.name}.{app}", f"WORKFLOW#{short}")
        document: Mapping[str, Any] = self._plain(item)["document"] if item is not None else {}
        return document

    def _knows(self, person: Person, space: Space) -> bool:
        """Whether the person has a role in a namespace that has a grant of this one, or has given it one."""
        own = [each.name for each in self.spaces if self.roles(person, each.name)]
        return any(self.grants(space.name, each) or self.grants(each, space.name) for each in own) or any(
            space.name in self.memory.said.get(each, "") for each in own
        )

    def _said_by(self, person: Person) -> str:
        return "\n".join(text for space, text in self.memory.said.items() if self.roles(person, space))

    def _cursor(self, asked: Asked) -> None:
        cursor = asked.query.get("cursor")
        home = self.memory.cursors.get(cursor or "")
        self._check("cursor", home is None or home == _list_of(asked), f"one of {home} in {_list_of(asked)}")

    def _keep_cursor(self, asked: Asked, answer: Answer) -> None:
        if answer.status < 300 and asked.method == "GET" and '"next_cursor"' in answer.text:
            cursor = answer.content.get("next_cursor")
            if cursor is not None:
                self.memory.cursors.setdefault(cursor, _list_of(asked))

    # -- names that nothing has ------------------------------------------------------------------------------------

    def unknown_names(self, asked: Asked) -> Callable[[str], str] | None:
        """A function that replaces the names in a request that its signer may not know by names of the same form that
        nothing has; None for a request without any. A prefix is no name: that another has it cannot be hidden. Who may
        approve a job knows it."""
        if '"prefix"' in (asked.body or "") or self._is_of_job(asked):
            return None
        patterns: dict[str, str] = {}
        for space in self.spaces:
            if self.roles(asked.person, space.name):
                continue
            lent, known = self._lent(space, asked.person), self._said_by(asked.person)
            for word in re.findall(rf"[A-Za-z0-9_-]*{space.mark}[A-Za-z0-9_-]*", asked.said):
                if word not in lent and word not in known:
                    patterns[rf"(?<![\w-]){re.escape(word)}(?![\w-])"] = word.replace(space.mark, cast.GHOST)
            if not self._knows(asked.person, space):
                patterns[rf"(?<![\w-]){re.escape(space.name)}(?![\w-])"] = f"{space.name[:-1]}0"
        if not any(re.search(pattern, asked.said) for pattern in patterns):
            return None

        def changed(text: str) -> str:
            for pattern, ghost in patterns.items():
                text = re.sub(pattern, ghost, text)
            return text

        return changed

    def same(self, answer: Answer, other: Answer, changed: Callable[[str], str]) -> None:
        """Compare the answer to a request with that to its twin. A similar name that an answer proposes depends on the
        letters of the name; `_leak` judges it."""
        got, expected = (other.status, other.text), (answer.status, changed(answer.text))
        if "did you mean" in other.text + answer.text:
            got, expected = (other.status, _HINT.sub("", other.text)), (answer.status, _HINT.sub("", expected[1]))
        self._check(
            "existence", got == expected, f"{answer.status} {answer.text[:600]}\nbut {other.status} {other.text[:600]}"
        )

    # -- the rules of rows and documents ---------------------------------------------------------------------------

    def _wrote_nothing(self, asked: Asked, changes: Sequence[Changed]) -> None:
        """A refusal may be on record; so may a report under a lease that is lost, to those who may report."""
        wrong = [change.key for change in changes if not change.key[0].startswith("AUDIT#")]
        if asked.resource.endswith("/report") and "work" in self._limited_rights(asked, self._place(asked) or ""):
            wrong = [
                key for key in wrong if key != (f"RUN#{asked.parameters['lease_id'].rpartition('-')[0]}", "RECORD")
            ]
        self._check("wrote", not wrong, f"{asked.method}: {wrong[:5]}")

    def _rows(self, asked: Asked, operation: Mapping[str, Any], changes: Sequence[Changed]) -> None:
        """Each row that a request changed belongs to a namespace in which its signer has the right that it needs."""
        place = self._place(asked)
        for change in changes:
            owner = owner_of(change)
            if owner is None or owner == place or change.key[0].startswith("AUDIT#"):
                continue
            fine = operation["x-needs"] in self.rights(asked.person, owner) or self._follows(
                operation["x-needs"], place or "", owner, change
            )
            fine = fine or (operation["operationId"] == "put_namespace" and change.key[1] == place)
            self._check("foreign row", fine, f"{change.table} {change.key} of {owner}")

    def _kinds(self, asked: Asked, changes: Sequence[Changed]) -> None:
        """Definitions change by who may define, members and grants by who may administer, whatever the operation is."""
        for change in changes:
            owner, needs = owner_of(change), _needed(change)
            if owner is not None and needs is not None:
                self._check("kind of row", needs in self.rights_before(asked.person, owner, changes), f"{change.key}")

    def _lease(self, asked: Asked, answer: Answer) -> None:
        lease = asked.parameters.get("lease_id")
        if lease is not None:
            holder = self.memory.leases.get(lease, cast.role("platform"))
            self._check("lease", holder == asked.person.member, f"{asked.person.member} uses a lease of {holder}")
        if asked.resource.endswith("/claim"):
            for each in answer.content["leases"]:
                self.memory.leases[each["lease"]] = asked.person.member

    def _follows(self, needs: str, place: str, owner: str, change: Changed) -> bool:
        """Whether a change is one that the owner has arranged: its job counts an event, or waits, by a grant of the
        namespace of the request; or its run belongs to a workflow or pool of that namespace, whose workers and
        approvers end it."""
        waits = change.key[0].startswith(f"TRIGGER#approval:{place}.")
        ends = change.table == "RunsTable" and (needs in ("work", "approve") or _moves_to_a_pool(change, place))
        counts = _keeps_its_document(change)  # a pool or workflow that is used notes how to count its uses
        return bool(self.grants(place, owner)) and (waits or ends or counts or change.table == "JobsTable")

    def _folders(self, changes: Sequence[Changed]) -> None:
        for change in changes:
            if not change.key[1].startswith("PREFIX#"):
                continue
            if change.before is not None:
                self._removed(change.before)
            if change.after is not None:
                bucket, prefix, space = _folder(change.after)
                near = [
                    (other, owner) for place, other, owner in self.memory.folders if place == bucket and owner != space
                ]
                inside = [each for each in near if each[0].startswith(prefix) or prefix.startswith(each[0])]
                self._registered(change.after)
                self._check("prefix", not inside, f"{prefix} of {space} beside {inside[:3]}")

    def _registered(self, item: Mapping[str, Any]) -> None:
        self.memory.folders.append(_folder(item))

    def _removed(self, item: Mapping[str, Any]) -> None:
        folder = _folder(item)
        if folder in self.memory.folders:
            self.memory.folders.remove(folder)

    def _documents(self, asked: Asked, answer: Answer) -> None:
        """The queues and Spark properties of a document that was accepted."""
        if asked.method not in ("PUT", "POST") or not asked.body:
            return
        space, document = self._place(asked) or "", json.loads(asked.body)
        if asked.query.get("update_schedules") == "false":  # those of the document are left out
            document = {name: part for name, part in document.items() if name not in ("schedules", "dags")}
        for name, value in _fields(document):
            if asked.method == "PUT" and name in _LENT and isinstance(value, str):
                self._check("grant", self._lends(space, name, value), f"{name} {value} in {space}")
            if name == "queue_url" and isinstance(value, str):
                found = OWN_QUEUE.fullmatch(value)
                account = found and (found["a"] or found["b"] or found["c"])
                self._check("queue", account == cast.ACCOUNT, value)
                self._check("reach", self._space_in(value) == space, f"{value} in {space}")
            if name == "spark" and isinstance(value, dict) and self._allowed_of(space).get("spark") is None:
                wrong = [key for key in value if LOADING.fullmatch(key)]
                listed = tuple(self._allowed_of(space).get("entry_points") or ())
                wrong = [key for key in wrong if not str(value[key]).startswith(listed)] if listed else []
                self._check("code", not wrong, f"{wrong} in {space}")

    def _lends(self, space: str, field: str, name: str) -> bool:
        """Whether a document of a namespace may name this in this field."""
        owner, _, short = name.partition(".")
        if owner == space or owner not in {each.name for each in self.spaces} or name.count(".") != _POINTS[field]:
            return True
        patterns = [
            each for grant in self.grants(owner, space) for kind in _LENT[field] for each in grant.get(kind, ())
        ]
        return any(fnmatchcase(short, pattern) for pattern in patterns)

    def _space_in(self, url: str) -> str | None:
        """The namespace that the name of a queue holds: the longest one, because one name may begin with another."""
        names = [each.name for each in self.spaces if f"/sluice-target-{each.name}-" in url]
        return max(names, key=len, default=None)

    def _allowed_of(self, space: str) -> Mapping[str, Any]:
        return self._document(f"ALLOWED#{space}", "ALLOWED")

    # -- approvals --------------------------------------------------------------------------------------------------

    def _approval(self, asked: Asked, operation: Mapping[str, Any], answer: Answer) -> None:
        """Nobody approves what he arranged. Who enabled a schedule has not arranged a run that another requests."""
        if operation["operationId"] != "approve_job":
            return
        job = asked.parameters["job_id"]
        schedule = ".".join(job.split(".")[:3])
        left_out = "enable_schedule" if answer.content.get("kind") == "run_now" else ""
        wrote = {who for how, who in self.memory.arranged.get(schedule, {}).items() if how != left_out}
        by = wrote | self.memory.requested.get(job, set())
        self._check(
            "arrangement", asked.person.member not in by, f"{asked.person.arn} approves {job}, arranged by {by}"
        )

    def _note(self, asked: Asked, operation: Mapping[str, Any], answer: Answer, changes: Sequence[Changed]) -> None:
        """Remember what a request that changed something wrote, and who arranged it."""
        if asked.method == "GET":
            return
        place, name, member = self._place(asked), operation["operationId"], asked.person.member
        if place is not None:
            self.memory.said[place] = f"{self.memory.said.get(place, '')}\n{asked.said}"
        if not [change for change in changes if not change.key[0].startswith("AUDIT#")]:
            return
        given = asked.parameters
        full = ".".join(given.get(part, "") for part in ("ns", "app", "name"))
        if name in ("put_schedule", "enable_schedule"):
            self.memory.arranged.setdefault(full, {})[name] = member
        if name == "run_now":
            self.memory.requested.setdefault(str(answer.content.get("job_id")), set()).add(member)

    # -- what follows -----------------------------------------------------------------------------------------------

    def _may_start(self, asked: Asked, run_id: str) -> bool:
        """Whether a run may follow from a request: of a namespace in which the person may do more than read, or of one
        to which such a namespace lends something. A workflow of another namespace needs its grant."""
        space = run_id.partition(".")[0]
        mine = [each.name for each in self.spaces if self.rights(asked.person, each.name) - {"read"}]
        follows = space in mine or any(self.grants(each, space) or self.grants(space, each) for each in mine)
        workflow = self._workflow_of(run_id) or ""
        owner = _space_of(workflow)
        short = workflow.partition(".")[2]
        runs = owner == space or any(
            fnmatchcase(short, name) for each in self.grants(owner, space) for name in each.get("run", ())
        )
        return follows and runs

    def _stopped(self, asked: Asked, changes: Sequence[Changed]) -> None:
        """Nobody stops or changes a schedule, definition, job or run of a namespace without a right there."""
        for change in changes:
            owner = owner_of(change)
            if owner is None or self.rights(asked.person, owner) - {"read"}:
                continue
            ended = change.after is None or str(_plain(change.after).get("state")) in (
                "CANCELLED",
                "KILLED",
                "ABORTED",
                "disabled",
            )
            fixed = change.key[0].startswith(
                ("NAMESPACES", "NS#", "APP#", "ACCESS", "GRANTS", "ALLOWED", "QUOTAS", "BUCKET#")
            )
            state = change.key[0].startswith(("SCHEDULE#", "RUN#")) and ended
            self._check("foreign end", not (fixed or state), f"{change.key} of {owner}")


def owner_of(change: Changed) -> str | None:
    """The namespace of a row, by its key; None for a row that namespaces share, or that nobody owns."""
    item = change.after if change.after is not None else change.before
    assert item is not None
    pk, sk = change.key
    head, _, rest = pk.partition("#")
    if head in ("LIMIT", "TARGET", "PLAN", "DELIVERY", "ZONES", "CLOSINGS"):
        return None
    if head in ("NAMESPACES", "ACCESS", "GRANTS", "QUOTAS"):
        return sk
    if head == "TRIGGER":
        return _space_of(sk)
    if head == "BUCKET":
        return _folder(item)[2] if sk.startswith("PREFIX#") else None
    if head == "REQUEST":
        return _space_of(str(item.get("job_id", {}).get("S", "")))
    if head == "EVENT":
        return None
    return _space_of(rest or pk)


def _words_of(space: Space, content: Any) -> set[str]:
    """The words in a document that a namespace alone has."""
    return set(re.findall(rf"[A-Za-z0-9_-]*{space.mark}[A-Za-z0-9_-]*", json.dumps(content)))


def _people_of(space: Space) -> set[str]:
    """The names of the people of a namespace. Who acts on what is lent, or is refused, is on record in the other."""
    return {space.word(name) for name in (*cast.ROLES, "both", "double")}


def _members(access: Mapping[str, Any], person: Person) -> list[Mapping[str, Any]]:
    if person.arn is None:
        return []
    account = person.arn.split(":")[4]
    return [
        each
        for each in access.get("members", ())
        if (account == each["member"] if each["member"].isdigit() else fnmatchcase(person.member, each["member"]))
    ]


def _needed(change: Changed) -> str | None:
    """The right that a change of a row of this kind needs; None for what follows from others."""
    pk, sk = change.key
    if pk in ("ACCESS", "GRANTS") or pk == "NAMESPACES":
        return "administer"
    if pk.startswith("ALLOWED#") or pk == "QUOTAS":
        return "limit"
    if _keeps_its_document(change):
        return None
    if pk.startswith(("NS#", "APP#", "BUCKET#")) or sk.startswith("VERSION#"):
        return "define"
    return None


def _moves_to_a_pool(change: Changed, place: str) -> bool:
    """Whether a live run of a workflow of a namespace counts in the pool that this names now (decision 0027)."""
    if change.before is None or change.after is None or "workflow" not in change.before:
        return False
    of_place = _space_of(change.before["workflow"]["S"]) == place
    return of_place and all(
        change.before.get(name) == change.after.get(name) for name in ("state", "reason", "schedule")
    )


def _keeps_its_document(change: Changed) -> bool:
    """Whether a definition has the same document and version after a change of its row."""
    if change.before is None or change.after is None or "document" not in change.before:
        return False
    return all(change.before.get(name) == change.after.get(name) for name in ("document", "version", "by"))


def _space_of(name: str) -> str:
    return re.split(r"[.#@]", name)[0]


def _folder(item: Mapping[str, Any]) -> tuple[str, str, str]:
    bucket, prefix = item["pk"]["S"].removeprefix("BUCKET#"), item["sk"]["S"].removeprefix("PREFIX#")
    row = _plain(item)
    return bucket, prefix, _space_of(str(row.get("owner") or row["dataset"]))


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without the types of DynamoDB; texts that are JSON are read."""
    return {name: _value(value) for name, value in item.items()}


def _value(value: Mapping[str, Any]) -> Any:
    [(kind, content)] = value.items()
    if kind == "M":
        return {name: _value(each) for name, each in content.items()}
    if kind == "L":
        return [_value(each) for each in content]
    if kind == "S" and content[:1] in ("{", "["):
        try:
            return json.loads(content)
        except ValueError:
            return content
    return content


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield name, each
            yield from _fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from _fields(each)


def _list_of(asked: Asked) -> str:
    filters = sorted((name, text) for name, text in asked.query.items() if name not in ("limit", "cursor"))
    return f"{asked.path} {filters}"


def _opened(answer: Answer) -> str:
    """The text within the cursor of an answer, which is only encoded."""
    found = re.search(r'"next_cursor": "([^"]+)"', answer.text)
    if found is None:
        return ""
    try:
        return base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)).decode(errors="replace")
    except ValueError:
        return ""


def _around(text: str, word: str) -> str:
    at = text.find(word)
    return text[max(0, at - 200) : at + len(word) + 100]
