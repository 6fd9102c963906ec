"""Three namespaces: their people, their documents, and the words that are theirs.

Each namespace has a mark, a text that all its names and texts contain. So an answer with a mark tells something of that
namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ACCOUNT, OTHER_ACCOUNT = "123456789012", "999999999999"
BUCKET = "lake-bucket"
KEYS = ["year", "month", "day"]
LONG = "sales-of-all-regions-and-returns-of-the-whole-group-2026-q_4"
ROLES = ("viewer", "operator", "author", "admin", "producer", "worker", "approver")
# The rights of each role, by docs/security.md. The document of the API names the right that each operation needs.
RIGHTS: dict[str, set[str]] = {
    "viewer": {"read"},
    "operator": {"read", "operate"},
    "author": {"read", "operate", "define", "produce"},
    "admin": {"read", "operate", "define", "produce", "administer"},
    "producer": {"produce"},
    "worker": {"work"},
    "approver": {"read", "approve"},
}
Document = dict[str, Any]


@dataclass(frozen=True)
class Space:
    """A namespace: its name, and the mark of its words."""

    name: str
    mark: str

    def word(self, noun: str) -> str:
        return f"{noun}-{self.mark}"

    @property
    def app(self) -> str:
        return self.word("app")

    def full(self, noun: str) -> str:
        """The full name of a workflow, schedule, DAG or message."""
        return f"{self.name}.{self.app}.{self.word(noun)}"

    def of_space(self, noun: str) -> str:
        """The full name of a dataset, pool, policy or calendar."""
        return f"{self.name}.{self.word(noun)}"


# One name is the beginning of the other, and a third namespace, which grants nothing, is the beginning of both.
CASTS = (
    (Space("fleet", "xylo"), Space("fleet-b", "yurt"), Space("flee", "zulu")),
    (Space(LONG, "xylo"), Space(f"{LONG}-b", "yurt"), Space(LONG[:-2], "zulu")),
)
GHOST = "wool"  # the mark of names that nothing has
ONE_AT_A_TIME = {"type": "concurrency", "max": 1, "on_unmet": "wait"}


@dataclass(frozen=True)
class Person:
    """A signer: a session of an IAM role, or another ARN."""

    arn: str | None
    title: str

    @property
    def member(self) -> str:
        """The user or role of the signer, as access documents name it."""
        return member_of(self.arn or "")


def session(name: str, who: str = "ada", account: str = ACCOUNT) -> str:
    return f"arn:aws:sts::{account}:assumed-role/{name}/{who}"


def role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def member_of(arn: str) -> str:
    head, _, rest = arn.partition(":assumed-role/")
    return f"{head.replace(':sts:', ':iam:')}:role/{rest.partition('/')[0]}" if rest else arn


ADMINISTRATOR = Person(session("platform"), "administrator")


def people(ours: Space, theirs: Space) -> list[Person]:
    """Two sessions of each role of both namespaces, people with a role in each, and those without any."""
    found = [
        Person(session(space.word(name), who), f"{name} of {space.name}")
        for space in (ours, theirs)
        for name in ROLES
        for who in ("ada", "bob")
    ]
    for one, other in ((ours, theirs), (theirs, ours)):
        title = f"author of {one.name} and approver of {other.name}"
        found += [Person(session(one.word("both"), who), title) for who in ("ada", "bob")]
        title = f"operator and approver of {one.name}"
        found += [Person(session(one.word("double"), who), title) for who in ("ada", "bob")]
    strange = [session("stranger"), session(ours.word("author"), account=OTHER_ACCOUNT)]
    strange += [f"arn:aws:iam::{ACCOUNT}:user/{ours.word('author')}", f"arn:aws:iam::{ACCOUNT}:root"]
    return [*found, *(Person(arn, "stranger") for arn in strange), Person(None, "nobody")]


def access(space: Space, other: Space) -> Document:
    members: list[Document] = [{"member": role(space.word(name)), "roles": [name]} for name in ROLES]
    for each in members:
        if each["roles"] == ["producer"]:
            each |= {"events": ["sales."], "datasets": [space.word("feed")]}
        if each["roles"] == ["worker"]:
            each |= {"pools": [space.word("etl")]}
    members += [{"member": role(space.word("both")), "roles": ["author"]}]
    members += [{"member": role(other.word("both")), "roles": ["approver"]}]
    members += [{"member": role(space.word("double")), "roles": ["operator", "approver"]}]
    return {"members": members}


def grants(space: Space, to: Space) -> Document:
    """What each namespace lends the other: two workflows, their statuses, a dataset, events, a pool and a policy."""
    lent = [f"{space.app}.{space.word(noun)}" for noun in ("lent", "asks")]
    one = {"to": to.name, "run": lent, "follow": lent[:1], "datasets": [space.word("shared")], "events": ["sales.*"]}
    return {"grants": [{**one, "pools": [space.word("slots")], "policies": [space.word("calm")]}]}


def allowed(space: Space) -> Document:
    """Without a list of queues. The prefixes of both namespaces lie in one folder of the bucket that they share."""
    of_stack = "arn:aws:iam::000000000000:role/job"
    code = f"s3://code-{space.mark}/"
    return {"buckets": [f"s3://{BUCKET}/raw/"], "entry_points": [code], "execution_roles": [of_stack]}


def queue_url(space: Space, name: str = "q") -> str:
    return f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/sluice-target-{space.name}-{name}"


def spark(space: Space) -> Document:
    return {"type": "emr_serverless", "entry_point": f"s3://code-{space.mark}/job.py"}


def app(space: Space, other: Space) -> Document:
    """The documents of a namespace that name nothing of another."""
    word, emr = space.word, spark(space)
    approvers = [role(word(name)) for name in ("approver", "double")] + [role(other.word("both"))]
    asks = {"type": "approval", "people": approvers}
    text = {"description": word("told"), "tags": {"team": word("crew")}, "owner": word("boss")}

    def dataset(noun: str) -> Document:
        return {"bucket": BUCKET, "prefix": f"raw/{word(noun)}/", "keys": KEYS, **text}

    sends = {"type": "sqs", "queue_url": queue_url(space)}
    days = {"type": "partition", "dataset": word("feed")}
    paid = {"type": "event", "event": "sales.paid"}
    daily = {"type": "time", "expression": "0 5 * * *"}
    schedules: dict[str, Document] = {
        "fed": {"trigger": days, "by": KEYS, "workflow": word("clean"), "properties": {"hint": word("aside")}},
        "timed": {"trigger": daily, "workflow": word("send"), "policy": word("calm")},
        "paid": {"trigger": paid, "workflow": word("send")},
        "asked": {"trigger": daily, "workflow": word("asks")},
        "vetted": {"trigger": paid, "workflow": word("send"), "constraints": [asks]},
        "pulls": {"trigger": daily, "workflow": word("pulled")},
        "slow": {"trigger": daily, "workflow": word("clean"), "pool": word("slots"),
                 "constraints": [ONE_AT_A_TIME]},
    }  # fmt: skip
    node = {"workflow": word("clean")}
    edge = {"from": word("first"), "to": word("last")}
    return {
        "datasets": {word(noun): dataset(noun) for noun in ("feed", "shared", "vault")},
        "workflows": {
            **{word(noun): {"target": emr, **text} for noun in ("clean", "lent", "vaulted")},
            word("asks"): {"target": emr, "approval": asks, "pool": word("slots")},
            word("send"): {"target": sends},
            word("pulled"): {"target": {"type": "worker", "pool": word("etl"), "arguments": [word("aside")]}},
            word("heavy"): {"target": {"type": "worker", "pool": word("hpc")}},
        },
        "pools": {word(noun): {"size": 2, **text} for noun in ("slots", "gpu")},
        "policies": {word(noun): {"max_events": 5, "interval": "1m", **text} for noun in ("calm", "strict")},
        "schedules": {word(noun): {**each, "enabled": True} for noun, each in schedules.items()},
        "dags": {word("whole"): {"trigger": daily, "nodes": {word("first"): node,
                                                               word("last"): {**node, "each": {"of": word("first")}}},
                                 "edges": [edge], "enabled": True}},
        **text,
    }  # fmt: skip


def crossing(space: Space, other: Space) -> dict[str, Document]:
    """The schedules of a namespace that use what another lends it."""
    word = space.word
    shared = {"type": "partition", "dataset": other.of_space("shared")}
    after = {"type": "program_status", "workflow": other.full("lent")}
    sold = {"type": "event", "event": "sales.paid", "namespace": other.name}
    made: dict[str, Document] = {
        "joins": {"trigger": shared, "by": KEYS, "workflow": word("clean")},
        "follows": {"trigger": after, "workflow": word("clean")},
        "borrows": {"trigger": sold, "workflow": other.full("lent"), "policy": other.of_space("calm")},
        "begs": {"trigger": sold, "workflow": other.full("asks")},
        "rents": {"trigger": sold, "workflow": word("clean"), "pool": other.of_space("slots")},
    }
    return {word(noun): {**each, "enabled": True} for noun, each in made.items()}
