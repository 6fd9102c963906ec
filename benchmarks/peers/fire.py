"""One peer, one load: runs in the Python of build/peers, which has the peers and nothing of Sluice.

    build/peers/bin/python benchmarks/peers/fire.py PEER STORE FOLDER DUE JOBS PER_SECOND

It stores ``JOBS`` one-shot jobs, the first due at the epoch second ``DUE``: all at once, or ``PER_SECOND`` in each
second. Then it prints ``ready`` and fires them until it is terminated. Each fire appends a line to ``FOLDER/fired``:
the number of the job, its due instant and the present one, in epoch ms. If ``SLUICE_PEER_QUEUE`` names a queue, each
fire sends a message to it instead. The environment then has the endpoint and the keys of AWS's SDK.

Options that differ from a peer's defaults are named where they are set: they make a peer fire everything, or earlier.
"""

from __future__ import annotations

import datetime
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Two: one for each core of the machine on which the figures of docs/internals/measurements.md are measured.
WORKERS = 2

Jobs = list[tuple[int, int]]
_file: int | None = None
_client: Any = None
_client_of = 0  # the process that has built it
_building = threading.Lock()


def jobs_of(due_s: int, count: int, per_second: int) -> Jobs:
    """The number of each job and its due instant in ms; ``per_second`` 0: all at one instant."""
    return [(number, (due_s + (number // per_second if per_second else 0)) * 1000) for number in range(count)]


def fired(number: int, due: int) -> None:
    """Write that a job has fired. One append of a short line is atomic, so threads and processes share the file."""
    global _file
    if queue := os.environ.get("SLUICE_PEER_QUEUE"):
        send(queue, number, due)
        return
    if _file is None:
        _file = os.open(os.environ["SLUICE_PEER_FIRED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_file, b"%d %d %d\n" % (number, due, time.time_ns() // 1_000_000))


def send(queue: str, number: int, due: int) -> None:
    """Send the message of a fire, with the attributes that Sluice's message has. Threads share the client."""
    global _client, _client_of
    with _building:
        if _client is None or _client_of != os.getpid():
            import boto3
            from botocore.config import Config

            _client, _client_of = boto3.client("sqs", config=Config(max_pool_connections=20)), os.getpid()
    about = {"sluice-event-id": f"shot{number:05d}", "sluice-nominal-time": instant(due).isoformat()}
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in about.items()}
    _client.send_message(QueueUrl=queue, MessageBody=f'{{"job": {number}}}', MessageAttributes=attributes)


def instant(due: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(due / 1000, datetime.UTC)


def apscheduler(store: str, folder: Path, jobs: Jobs) -> None:
    """APScheduler 3: one process, its default pool of ten threads, and a job store in a database."""
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.job import Job
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.blocking import BlockingScheduler
    from apscheduler.triggers.date import DateTrigger

    job_store = SQLAlchemyJobStore(url=store)
    # By default a job that is a second late is not run at all, and of one id one instance at a time.
    defaults = {"misfire_grace_time": None, "coalesce": False, "max_instances": 1}
    executors = {"default": ThreadPoolExecutor(10)}
    scheduler = BlockingScheduler(
        jobstores={"default": job_store}, executors=executors, job_defaults=defaults, timezone=datetime.UTC
    )
    job_store.start(scheduler, "default")

    def row(number: int, due: int) -> dict[str, Any]:
        trigger = DateTrigger(run_date=instant(due))
        about = {"id": f"shot{number:05d}", "name": "shot", "executor": "default", "next_run_time": instant(due)}
        job = Job(scheduler, func="fire:fired", trigger=trigger, args=(number, due), kwargs={}, **about, **defaults)
        state = pickle.dumps(job.__getstate__(), job_store.pickle_protocol)
        return {"id": job.id, "next_run_time": due / 1000, "job_state": state}

    # The rows that `add_job` writes, in one transaction instead of one for each job.
    with job_store.engine.begin() as connection:
        connection.execute(job_store.jobs_t.insert(), [row(*each) for each in jobs])
    ready()
    scheduler.start()


def huey(store: str, folder: Path, jobs: Jobs) -> None:
    """Huey: a process with the scheduler and the workers, which are threads."""
    from huey import RedisHuey, SqliteHuey

    app: Any
    if store.startswith("redis:"):
        app = RedisHuey("bench", url=store, results=False)
    else:
        app = SqliteHuey("bench", filename=str(folder / "huey.db"), results=False)
    shot = app.task(name="shot")(fired)
    for number, due in jobs:
        # Huey's instants have no zone; they are UTC.
        app.add_schedule(shot.task_class((number, due), eta=instant(due).replace(tzinfo=None)))
    consumer = app.create_consumer(
        # The scheduler looks every second; no smaller interval is allowed. An idle worker looks at least every 0.1 s.
        workers=WORKERS, worker_type="thread", periodic=False, scheduler_interval=1, max_delay=0.1
    )  # fmt: skip
    ready()
    consumer.run()


def celery_app(store: str) -> Any:
    from celery import Celery

    app = Celery("bench", broker=store, backend=None)
    app.conf.update(
        redbeat_redis_url=store,
        # The beat looks at least every second. Its default is five minutes, of RedBeat's documents five seconds.
        beat_max_loop_interval=1,
        task_ignore_result=True,
        worker_concurrency=WORKERS,
        # A task that a dead worker had begun is done again, as Sluice sends again.
        task_acks_late=True,
        broker_connection_retry_on_startup=True,
        worker_hijack_root_logger=False,
    )
    app.task(name="shot", ignore_result=True)(fired)
    return app


def celery(store: str, folder: Path, jobs: Jobs) -> None:
    """Celery: RedBeat's beat in this process, and a worker of two processes."""
    from redbeat import RedBeatSchedulerEntry
    from redbeat.schedules import rrule

    app = celery_app(store)
    for number, due in jobs:
        once = rrule("SECONDLY", dtstart=instant(due), count=1, app=app)
        RedBeatSchedulerEntry(f"shot{number:05d}", "shot", once, args=[number, due], app=app).save()
    pid = os.fork()
    if pid == 0:
        argv = ["worker", "--pool", "prefork", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
        celery_app(store).worker_main([*argv, "--pidfile", str(folder / "worker.pid")])
        os._exit(0)
    ready()
    app.Beat(loglevel="ERROR", scheduler_cls="redbeat.RedBeatScheduler", pidfile=None).run()


PEERS: dict[str, Callable[[str, Path, Jobs], None]] = {"apscheduler": apscheduler, "huey": huey, "celery": celery}


def ready() -> None:
    print("ready", flush=True)


def lines(file: Path) -> Iterator[tuple[int, int, int]]:
    """The fires in a file: number, due and fired instant in ms. A line that is not complete yet is left out."""
    text = file.read_text() if file.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        number, due, at = line.split()
        yield int(number), int(due), int(at)


def main(arguments: list[str]) -> None:
    name, store, folder, due_s, count, per_second = arguments
    os.environ["SLUICE_PEER_FIRED"] = f"{folder}/fired"
    # APScheduler imports the function by this name.
    sys.modules["fire"] = sys.modules[__name__]
    PEERS[name](store, Path(folder), jobs_of(int(due_s), int(count), int(per_second)))


if __name__ == "__main__":
    main(sys.argv[1:])
