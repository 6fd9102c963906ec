"""What each part of a lone fire costs, and which promise needs it: from the counts of the path `cron_to_sqs`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.cost import prices
from benchmarks.cost.prices import MILLION, READ_UNIT, WRITE_UNIT
from benchmarks.machine import ROOT

PATH = "cron_to_sqs"
ONCE = "a job has a run or a record, never both"
HINTED = "the fire is sent at its instant, and not by the next tick"
CLOSED = "after a closing, at most one more sub-batch is sent"
ALONE = "two invocations do not send one job"
# The writes, reads and messages, from the tick to the record: Lambda, row and call; what it is, and what needs it.
NEEDED: Mapping[tuple[str, str, str], tuple[str, str]] = {
    ("tick", "TIMER", "Batch get"): ("tick: the timer", "a crash of an emitter skips no fire"),
    ("tick", "STATE", "Batch get"): ("tick: the schedule state", "a closed schedule prepares nothing"),
    ("tick", "FIRE", "Batch put"): ("tick: the job, in the wake index", "what is due is found after any crash"),
    ("tick", "TIMER", "Put"): ("tick: the timer moves on, also in the wake index", "no fire is skipped or doubled"),
    ("", "", "SendMessageBatch"): ("SQS: the hint is sent", HINTED),
    ("", "", "ReceiveMessage"): ("SQS: it is received", HINTED),
    ("check", "FIRE", "Get"): ("the job, for the dispatch and for its check", "a job becomes at most one run"),
    ("check", "STATE", "Get"): ("the schedule state, for the decision", "nothing starts that is closed"),
    ("check", "WORKFLOW", "Get"): ("the workflow, for the decision", "no start exceeds a limit"),
    ("check", "GATHERING", "Get"): ("the job that the fire could join", "a fire joins a job that waits"),
    ("check", "RUN", "Get"): ("the run of this id", "a repeated hint sends nothing again"),
    ("check", "RECORD", "Get"): ("the record of this id", ONCE),
    ("check", "ALLOWED", "Get"): (
        "the allow-list, unless read in the last five seconds",
        "only what it names is called",
    ),
    ("check", "LEASE", "Put"): ("the lease", ALONE),
    ("check", "several", "Query"): ("the leases of others", ALONE),
    ("check", "STATE", "Batch get"): ("the schedule state again, before the call", CLOSED),
    ("check", "FIRE", "Batch get"): ("the job again, before the call", CLOSED),
    ("", "", "SendMessage"): ("SQS: the message itself", "the delivery"),
    ("check", "RUN", "Tx put"): ("the run, and its entries by workflow, schedule and day", "what was sent has a run"),
    ("check", "FIRE", "Tx delete"): ("the job is removed, in the same transaction", ONCE),
    ("", "", "DeleteMessageBatch"): ("SQS: the hint is deleted", HINTED),
}


class Part(NamedTuple):
    """A part of a lone fire: its units of tables, indexes and reads, and dollars a million."""

    what: str
    table_units: float
    index_units: float
    read_units: float
    usd: float
    needed_for: str


def parts(one: Mapping[str, Any]) -> Iterator[Part]:
    """The parts of a lone fire, from its entry in the results. Raises KeyError for one that has no reason here."""
    units = {(each["lambda"], each["row"], each["call"]): each for each in (*one["writes"], *one["reads"])}
    sent = {("", "", name.partition(":")[2]): count for name, count in one["calls"].items() if name.startswith("sqs:")}
    if unknown := {*units, *sent} - NEEDED.keys():
        raise KeyError(f"expected what needs each part of a lone fire, got none for {sorted(unknown)}")
    for key, (what, why) in NEEDED.items():
        found = units.get(key, {})
        table, index, read = (found.get(name, 0) for name in ("table_units", "index_units", "read_units"))
        usd = (table + index) * WRITE_UNIT + read * READ_UNIT + sent.get(key, 0) * prices.SQS_REQUEST
        yield Part(what, table, index, read, usd * MILLION, why)
    asleep = one["lambda_waited_s"] * _memory_gb() * prices.LAMBDA_GB_SECOND * MILLION
    by = one["usd_per_million_by"]
    yield Part("Lambda: the request of `check`", 0, 0, 0, by["lambda_requests"], HINTED)
    yield Part(
        "Lambda: sleep until the instant", 0, 0, 0, asleep, "nothing is sent before it is due, nor seconds later"
    )
    yield Part("Lambda: work", 0, 0, 0, by["lambda_duration"] - asleep, "the calls above")


def _memory_gb() -> float:
    stages = json.loads((ROOT / ".chalice/config.json").read_text())["stages"]["sluice"]["lambda_functions"]
    return float(stages["check"]["lambda_memory_size"]) / 1024
