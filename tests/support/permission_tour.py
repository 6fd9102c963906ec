"""Uses every flow once, so that every permission that a Lambda may need is used: `tests/infra/test_permissions.py`
needs this.

The scenarios of the crash points use every kind of write. The rest are reads, targets of every kind, and the other work
of the handlers. They run over the API on moto, in worlds in memory, and by adapters whose requests are only recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import boto3

from chalicelib.aws.failures import FailedMessages
from chalicelib.aws.openlineage.outlets import DeadLetters, FolderOutlet, QueueOutlet
from chalicelib.aws.s3.history import S3HistoryLake
from chalicelib.aws.tables.catalog import NEAR_PREFIXES
from chalicelib.aws.targets.secrets import Secrets
from chalicelib.core import zones
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.history.lines import Part
from chalicelib.core.openlineage.outlets import Item
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import WAKE, Subscription
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.writes import Put
from chalicelib.flow import shards
from chalicelib.flow.deliveries import join
from chalicelib.flow.fires.zone_rules import Follower
from chalicelib.flow.history import period_ends
from chalicelib.flow.ingest.objects import match_object
from chalicelib.flow.runs import actions
from chalicelib.flow.schedules.actions import run_now
from chalicelib.flow.system import sweep
from tests.acceptance.words import absent, all_of, any_of, event, on, partition, size, status
from tests.faults.dying import play as play_scenario
from tests.faults.dying import world_for
from tests.faults.test_crash_points import SCENARIOS
from tests.support import dags, requests_of_ports, roles, zone_rules
from tests.support.answers import views
from tests.support.clock import NOON
from tests.support.iceberg_files import BUCKET, TABLE, file, lay_down
from tests.support.ledgers import LedgerBetween
from tests.support.openlineage import Lineage
from tests.support.permissions import acting, reported
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.requests_of_ports import Recorded, RecordingClient
from tests.support.schedules import BY_DAY, at
from tests.support.state_machines import TARGET
from tests.support.world import EMR, World, day, flights, full
from tests.web.conftest import APP, NS, Api, installation, settle_in

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:sluice-target-x"
CPU = {"cloudwatch": {"namespace": "AWS/RDS", "metric": "CPUUtilization", "period": 60, "statistic": "Average"}}
DELIVERED = {
    "sns": {"type": "sns", "topic_arn": "arn:aws:sns:us-east-1:000000000000:sluice-target-x"},
    "function": {"type": "lambda", "function": FUNCTION},
    "bus": {"type": "event_bus", "bus": "sluice-target-x", "source": "flights", "detail_type": "done"},
}


def play() -> None:
    for scenario in SCENARIOS.values():
        world = world_for(scenario)
        # Events that do not fit into a context go into a manifest beside it; here this applies to all events.
        world.ports = world.with_ports(settings=replace(world.ports.settings, inline_events=0))
        play_scenario(scenario, world)
    steps = (_ready_datasets, _many_datasets, _delivered_late, _gathered, _statuses_arrive, _joined_again)
    steps += (
        _failed_without_event,
        _claimed_late,
        _read_late,
        _granted,
        _many_timers,
        _deferred,
        _ended,
        _ends_of_periods,
        _lineage,
    )
    steps += (_other_zone_rules, _woken_by_a_partition, _nodes_joined, _nodes_with_elements)
    for step in (*steps, _asked_outside, _other_targets, _listed_application, _executions, _adapters):
        step()
    with installation() as api:
        settle_in(api)
        _over_http(api)


def _ready_datasets() -> None:
    """Partitions that are ready by a manifest and the objects in it, in the lake and in another bucket; a table of
    Glue.
    """
    for bucket in ("lake", roles.WATCHED):
        world = World(watched_buckets=(roles.WATCHED,))
        document = flights({})
        document["datasets"]["flights"] |= {"bucket": bucket, "ready": {"manifest": "MANIFEST"}}
        world.deploy(document)
        place = roles.LAKE if bucket == "lake" else bucket
        world.upload(day(1, name="MANIFEST"), bucket=place, text="a.csv")
    world = World()
    world.deploy({"datasets": {"orders": {**TABLE, "glue_table": "sales.orders", "single_writer": False}}})
    lay_down(world, 1)
    world.lake.glue["sales.orders"] = f"s3://{BUCKET}/{file(1)}"
    match_object(world.ports, ObjectCreated(BUCKET, file(1), world.clock.now()))


def _woken_by_a_partition() -> None:
    """A job waits for its window, and a partition may meet a constraint of its schedule."""
    world = World()
    window = {"type": "time_window", "start": "22:00", "end": "23:00"}
    world.deploy(flights({"daily": on(partition("weather"), "clean", window)}))
    world.upload(day(1, "weather", "a.csv"))
    [job] = world.jobs("daily")
    key = partition_key("demo.flights")
    world.ports.ledger.commit([Put(Subscription(key, job.schedule, job.generation, 1, WAKE, NOON))])
    world.upload(day(1))
    [woken] = world.jobs("daily")
    assert woken.rev > job.rev


def _many_datasets() -> None:
    """An object of a dataset with more datasets in folders beside it than one query finds."""
    world = World()
    names = ["", *(f"f{number:02}/" for number in range(NEAR_PREFIXES + 2))]
    made = {
        f"d{number}": {"bucket": "lake", "prefix": f"raw/{name}", "keys": ["day"]} for number, name in enumerate(names)
    }
    world.deploy({"datasets": made})
    world.upload("raw/x/y/1.csv")


def _delivered_late() -> None:
    """A partition whose Lambda was killed before any schedule got the event. The tick finds it, and its hint applies
    it.
    """
    world = World()
    world.deploy(flights({"each": on(partition(), "clean")}))
    died: list[Sequence[Put]] = []

    class Dying(LedgerBetween):
        def before_puts(self, writes: Sequence[Put]) -> None:
            died.append(writes)
            raise RuntimeError("the Lambda is gone")

    with suppress(Exception):
        world.clock.wait_until(NOON)
        match_object(
            world.with_ports(ledger=Dying(world.ports.ledger)), ObjectCreated(roles.LAKE, day(1), world.clock.now())
        )
    assert died
    for _ in range(3):
        world.pass_by("11m")


def _ended() -> None:
    """Deployments of an app with a schedule that has ended and deleted itself: by a request, and of an upload."""
    world = World()
    once = on({"type": "time", "due_time": "10s"}, "notify", when_done="delete")
    world.deploy(flights({"once": once}))
    world.pass_by("5m")
    world.deploy(flights({"once": once}) | {"owner": "ann"})
    for name in ("api", "check"):
        with acting(name):
            world.deploy(flights({"once": once}))


def _deferred() -> None:
    """Jobs of a policy join its queue later, because others wait there. The sweep looks who is first."""
    world = World()
    many = at("1 12 * * *", "notify", policy="calm", spread={"count": 60})
    world.deploy({**flights({"many": many}), "policies": {"calm": {"max_events": 1, "interval": "1h"}}})
    with patch.object(join, "MANY", 30):
        world.settle()
        world.tick()
        world.clock.pass_by("1m")
        world.settle()
        world.clock.pass_by("10s")
        sweep.sweep_all(world.ports)


def _gathered() -> None:
    """Custom events that meet no key, detach a job, undo a leaf, and come after a timeout. Objects use
    the same code.
    """
    schedules = {
        "detached": on(event("e", 2), "clean", coalesce=False),
        "keyed": on(event("e"), "clean", by=["region"]),
        "quiet": on(all_of(event("x"), absent(event("e"), within="1h")), "clean"),
        "late": on(event("e", 9), "clean", timeout={"after": "1m", "then": "abort"}),
        "sizes": on(size("1 GB"), "clean", by=["day"]),
    }
    world = World()
    world.deploy(flights(schedules))
    world.post("x")
    for _ in range(3):
        world.post("e")
        world.clock.pass_by("2m")
    world.upload("raw/flights/readme.txt", size=1)


def _statuses_arrive() -> None:
    """Statuses of runs that meet no key, and that detach a job."""
    pairs = on(status("clean", count=2), "join", coalesce=False)
    keyed = on(all_of(status("clean"), partition("weather")), "join", by=["day"])
    world = World()
    # A run of several partitions has no single day.
    world.deploy(flights({"each": on(partition(count=2), "clean"), "pairs": pairs, "keyed": keyed}))
    for number in (1, 2, 3, 4):
        world.upload(day(number))
        world.settle()
        world.finish()


def _joined_again() -> None:
    """A run-now of a join for a day. Its context has the status of the upstream run for that day."""
    join = on(all_of(status("clean"), partition("weather")), "join", by=BY_DAY)
    world = World()
    world.deploy(flights({"each": on(partition(), "clean", by=BY_DAY), "join": join}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.settle()
    run_now(world.ports, full("join"), {}, "r1", partition={"year": "2013", "month": "1", "day": "1"})
    world.settle()
    assert world.context(world.runs("join")[0])["upstream"] is not None


def _nodes_joined() -> None:
    """The end of a node decides a join: it reads the states of all nodes, and the attempts of one that failed."""
    world = World()
    world.deploy(dags.app(dags.dag("a -> z", nodes={"z": {"workflow": "w_z", "when": "all_done"}})))
    world.upload(day(1))
    world.settle()
    dags.ends(world, "a", "FAILED")
    assert dags.ran(world) == ["a", "z"]


def _nodes_with_elements() -> None:
    """The end of an element begins the next one, and the last one ends the node."""
    world = World()
    load = {"workflow": "w_load", "each": {"of": "scan", "concurrency": 1}}
    world.deploy(dags.app(dags.dag("scan -> load", "load -> z", nodes={"load": load})))
    world.upload(day(1))
    world.settle()
    dags.ends(world, "scan", result=["x", "y"])
    for _ in range(2):
        dags.ends(world, "load")
    assert dags.ran(world) == ["scan", "load", "load", "z"]


def _granted() -> None:
    """Events, partitions and statuses that count for another namespace by its grants, a revocation, and its end."""
    world = World(authorization="enforce")
    world.deploy(flights({"each": on(partition(), "clean")}))
    everything = {"grants": [{"to": "other", **{kind: ["*"] for kind in ("run", "follow", "datasets", "events")}}]}
    for document in (everything, {"grants": []}, everything):
        world.grant("demo", document)
        if document is everything and not world.ports.rows.get(Definition, "app", "other.app"):
            theirs = {
                "posted": on({"type": "event", "event": "e", "namespace": "demo"}, "demo.flights.clean"),
                "landed": on(partition("demo.flights"), "demo.flights.clean"),
                "follows": on(status("demo.flights.clean"), "demo.flights.clean", on_update="drop"),
            }
            theirs["follows"]["trigger"]["schedule"] = "demo.flights.each"
            world.deploy({"schedules": theirs}, "other", "app")
            world.post("e")
            world.upload(day(1))
        world.settle()
        world.finish()
        world.settle()


def _many_timers() -> None:
    """The tick hands shards on: of timers, and of jobs whose hints were lost."""
    world = World(wake_shards=1)
    world.deploy(flights({"beat": at("@every 100s", "notify"), "a": on(partition(), "clean")}))
    with patch.object(shards, "PAGE", 1):
        world.hints.lose = True
        for number in (1, 2, 3):
            world.upload(day(number))
        world.hints.lose = False
        world.pass_by("2m")


def _other_zone_rules() -> None:
    """The tick takes back a fire that was prepared by former rules of time zones."""
    with TemporaryDirectory() as folder:
        former, present = (
            zone_rules.made(Path(folder), str(offset), {"America/Vancouver": zone_rules.hours(offset)})
            for offset in (-7, -8)
        )
        with patch.object(zones, "_rules", former):
            world = World()
            world.deploy(flights({"daily": at("0 6 * * *", "notify", zone="America/Vancouver")}))
            world.pass_by("59m")
        with patch.object(zones, "_rules", present), acting("tick"):
            Follower().step(world.ports)


def _failed_without_event() -> None:
    """A run whose failure event is lost. The check polls it, counts the failure, pauses the schedule, and announces the
    status.
    """
    world = World()
    keyed = on(all_of(status("clean", "FAILED"), partition("weather")), "join", by=["day"])
    world.deploy(flights({"each": on(partition(count=2), "clean", pause_after_failures=1), "next": keyed}))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    for run in world.targets.emr.runs.values():
        run.state = "FAILED"
    for _ in range(4):
        world.pass_by("11m")


def _ends_of_periods() -> None:
    """A schedule has run whose trigger has to know the periods of its dataset, so its document is read, too."""
    world = World()
    dataset = {
        "bucket": "lake",
        "prefix": "days/",
        "keys": ["day"],
        "period": {"each": "day", "format": "day=%Y-%m-%d"},
    }
    missing = {"type": "absent", "of": partition("days"), "period": "yesterday", "deadline": "06:00"}
    made = on(any_of(partition("days"), missing), "clean", by=["day"])
    world.deploy(flights({"load": made}) | {"datasets": {"days": dataset}})
    world.upload("days/day=2026-03-01/part-0")
    world.settle()
    world.finish()
    for span in ("2h", "8d"):
        world.clock.pass_by(span)
        with acting("lake"):
            assert period_ends.keep(world.ports, [full("load")], {}) == 1


def _lineage() -> None:
    """Runs of gathered events, and DAG runs whose nodes end, one of them without a run."""
    world = World()
    window = {"type": "time_window", "start": "00:00", "end": "01:00", "on_unmet": "abort"}
    graph = dags.dag("a -> b", nodes={"b": {"workflow": "w_b", "constraints": [window]}})
    load = on(partition(), "clean", by=["year", "month", "day"])
    world.deploy(dags.app(graph, {"load": load}))
    lineage = Lineage(world)
    world.upload(day(1))
    world.settle()
    world.finish()
    world.settle()
    world.upload(day(2))
    world.settle()
    world.finish("FAILED")
    world.settle()
    with acting("lineage"):
        assert len(lineage.work()) > 0


def _claimed_late() -> None:
    """A worker claims a run whose context has expired in the bucket: the API writes it again."""
    world = World(inline_events=0)
    world.deploy(flights({"pull": on(partition(), "pulled")}, pulled={"target": PULLED}))
    world.upload(day(1))
    world.settle()
    world.payloads.contexts.clear()
    PullWorker(world, "ann").claim()


def _read_late() -> None:
    """A person reads a run of many events whose rows may have expired."""
    world = World(inline_events=0)
    world.deploy(flights({"each": on(partition(), "clean")}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("20d")
    with acting("api"):
        assert views.events_view(world.ports, world.runs("each")[0])


def _asked_outside() -> None:
    """Constraints that measure the load outside, and that call a function."""
    for of in (CPU, {"subnet": "subnet-0a1b2c3d"}, {"emr_application": "00app"}):
        world = World()
        load = {"type": "load", "of": of, "below": 0.7, "recheck": "2m"}
        world.deploy(flights({"clean": on(partition(), "clean", load)}))
        world.upload(day(1))
        world.settle()
    world = World()
    probe = {"type": "probe", "target": {"type": "lambda", "function": FUNCTION}}
    world.targets.says = [b'{"met": true}']
    world.deploy(flights({"clean": on(partition(), "clean", probe)}))
    world.upload(day(1))
    world.settle()


def _other_targets() -> None:
    """Deliveries to a topic, a function and a bus; the scenarios deliver to queues."""
    for name, target in DELIVERED.items():
        world = World()
        world.deploy(flights({"each": on(partition(), name)}, **{name: {"target": target}}))
        world.upload(day(1))
        world.settle()


def _listed_application() -> None:
    """Runs in an application and with a role that the stack lists besides its own. One is polled and cancelled; one had
    no answer to its start, and is searched for.
    """
    for lost in (0, 1):
        world = World(emr_application_ids=(roles.LISTED_APPLICATION,), emr_role_arns=(roles.LISTED_ROLE,))
        target = {**EMR, "application_id": roles.LISTED_APPLICATION, "execution_role_arn": roles.LISTED_ROLE}
        world.deploy(flights({"each": on(partition(), "listed")}, listed={"target": target}))
        world.targets.emr.lose_answers = lost
        world.upload(day(1))
        world.settle()
        if lost:
            world.disable("each")
            world.pass_by("3m")
            continue
        # The fake of EMR puts its own application into the id of a run.
        [run] = world.runs("each")
        told_of = replace(run, target_id=f"{roles.LISTED_APPLICATION}/jr")
        with acting("check"):
            for act in (world.targets.emr.status, world.targets.emr.find):
                act(told_of)
            world.targets.measure({"emr_application": roles.LISTED_APPLICATION})
        for name in ("check", "run_state"):
            with acting(name):
                world.targets.emr.run_name(f"{roles.LISTED_APPLICATION}/jr")
        with acting("check"):
            reported(requests_of_ports.needs_of(world.targets.emr, "cancel", (told_of,)))


def _executions() -> None:
    """An execution that is stopped, one whose start got no answer, and one whose event does not name its run."""
    world = World()
    world.deploy(flights({"each": on(partition(), "etl", by=["day"])}, etl={"target": TARGET}))
    for number, lost in ((1, 0), (2, 1)):
        world.targets.machines.lose_answers = lost
        world.upload(day(number))
        world.settle()
    world.disable("each")
    actions.cancel(world.ports, world.runs("each")[0].run_id, "ada")
    world.pass_by("3m")
    with acting("run_state"):
        world.targets.step_functions.run_name(next(iter(world.targets.machines.executions)))


def _uploaded(api: Api, s3: Any) -> None:
    """An uploaded document, with data that is too large for a row."""
    trigger = {"type": "time", "expression": "0 5 * * *"}
    document = {
        "workflows": {"w": {"target": EMR}},
        "schedules": {"s": {"workflow": "w", "trigger": trigger, "data": "x" * 20_000}},
    }
    upload = api.post(f"{NS}/apps/large/uploads")["upload"]
    s3.put_object(Bucket=roles.CONTROL, Key=f"uploads/demo.large/{upload}.json", Body=json.dumps(document).encode())
    assert api.send("PUT", f"{NS}/apps/large?upload={upload}").status_code == 202
    api.work()
    assert api.get(f"{NS}/apps/large/deployments/{upload}")["state"] == "DONE"


def _adapters() -> None:
    """Calls of adapters that no port covers: keys of callbacks, repeated messages, history."""
    for name in ("arn:aws:secretsmanager:us-east-1:000000000000:secret:sluice-target-x-AbCdEf", "/sluice-target/x"):
        ssm, manager = RecordingClient("ssm"), RecordingClient("secretsmanager")
        secrets = Secrets(lambda ssm=ssm: ssm, lambda manager=manager: manager, lambda: NOON)
        _asks("check", lambda secrets=secrets, name=name: secrets.keys(name), ssm, manager)
    failed = [{"messageId": "m", "receiptHandle": "r", "attributes": {"ApproximateReceiveCount": "1"}}]
    queues = {"objects": ("ObjectsQueue",), "check": ("HintsQueue", "BurstHintsQueue"), "custom": ("CustomQueue",)}
    for name, queue in ((name, queue) for name, of_name in queues.items() for queue in of_name):
        sqs = RecordingClient("sqs", {"GetQueueUrl": {"QueueUrl": f"https://sqs.example/{queue}"}})
        again = FailedMessages(sqs, roles.PLACE.arn("sqs", queue))
        _asks(name, lambda again=again: again.come_again(failed), sqs)
    sqs = RecordingClient("sqs", {"GetQueueUrl": {"QueueUrl": "https://sqs.example/ObjectsQueue"}})
    _asks("objects", lambda: FailedMessages(sqs, roles.PLACE.arn("sqs", "ObjectsQueue")).send_again("{}"), sqs)
    policy = json.dumps({"deadLetterTargetArn": roles.PLACE.arn("sqs", "CustomDeadLetters")})
    sqs = RecordingClient("sqs", {
        "GetQueueUrl": lambda QueueName: {"QueueUrl": f"https://sqs.example/{QueueName}"},
        "GetQueueAttributes": {"Attributes": {"RedrivePolicy": policy}},
    })  # fmt: skip
    _asks("custom", lambda: FailedMessages(sqs, roles.PLACE.arn("sqs", "CustomQueue")).set_aside("{}"), sqs)
    s3 = RecordingClient("s3", {"PutObject": {}})
    history = S3HistoryLake(s3, roles.LAKE)
    _asks("lake", lambda: history.put(Part("history/day=2026-03-02/part.json.gz", (), ("1",))), s3)
    _asks("lake", lambda: history.tell_late(["history_late/2026-03-01"]), s3)
    _lineage_is_sent()


def _lineage_is_sent() -> None:
    """To a queue, a folder, and the dead letters; and the secret of an endpoint is read."""
    item = Item("1", 0, {"eventTime": "2026-03-02T12:00:00.000Z", "eventType": "START", "run": {"runId": "r1"}})
    s3, dead = RecordingClient("s3"), RecordingClient("sqs")
    sqs = RecordingClient("sqs", {"GetQueueUrl": {"QueueUrl": "https://sqs.example/lineage"}})
    _asks("lineage", lambda: FolderOutlet(s3, roles.LINEAGE_FOLDER).send([item]), s3)
    _asks("lineage", lambda: QueueOutlet(sqs, roles.LINEAGE_QUEUE).send([item]), sqs)
    letters = DeadLetters(dead, "https://sqs.example/LineageDeadLetters", lambda: NOON)
    _asks("lineage", lambda: letters.keep(item, "HTTP 400"), dead)
    ssm = RecordingClient("ssm")
    secrets = Secrets(lambda: ssm, lambda: ssm, lambda: NOON)
    _asks("lineage", lambda: secrets.header(roles.LINEAGE_SECRET), ssm)


def _asks(name: str, act: Callable[[], Any], *clients: RecordingClient) -> None:
    """Let a Lambda send requests, and record what they need."""
    with suppress(Recorded):
        act()
    with acting(name):
        reported(need for client in clients for need in client.needs)


def _over_http(api: Api) -> None:
    """Lists by day, by schedule and by workflow, logs, and the reports of the days."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=roles.LAKE)
    report = "history_report/json/day=2026-03-02/as_of=20260303T011500.000Z/"
    for name in ("_SUCCESS", "namespace=demo/part-00000.c000.json"):
        s3.put_object(Bucket=roles.LAKE, Key=report + name, Body=b"")
    api.schedule("daily", workflow="clean")
    api.post(f"{NS}/stop", {"reason": "repair"})
    api.schedule("daily", workflow="clean", tags={"team": "a"})
    api.post(f"{NS}/start", {})
    _uploaded(api, s3)
    api.post(f"{NS}/datasets/flights/partitions", {"partition": {"year": "2013", "month": "1", "day": "1"}})
    run = api.post(f"{APP}/schedules/daily/run")["job_id"]
    api.work()
    for path in ("runs?day=2026-03-02", "records?day=2026-03-02", "dead-letters", "reports?day=2026-03-02"):
        api.get(f"{NS}/{path}")
    for path in ("now", "fires"):  # the wake indexes of all tables
        api.get(f"{NS}/{path}")
    api.get(f"{APP}/schedules/daily/runs")
    api.get(f"{APP}/workflows/clean/runs")
    api.get(f"/v1/runs/{run}")
    api.get(f"/v1/runs/{run}/logs")
