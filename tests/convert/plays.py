"""What Airflow runs for the files of `tests/convert/files`, written by hand from its documentation.

https://airflow.apache.org/docs/apache-airflow/stable/core-concepts/dags.html (branches, trigger rules, states)
https://airflow.apache.org/docs/apache-airflow/stable/authoring-and-scheduling/index.html (datasets, mapped tasks)

A run is a list of waves: the tasks that start together, once those of the wave before have ended. ``task!`` fails, with
all its retries; ``task=value`` succeeds and returns the value. Tasks without a wave were skipped, or have the state
upstream_failed. Empty operators are left out, because they run nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Played:
    """One run. ``events``: what happens first, such as ``at INSTANT`` and ``partition DATASET KEY=VALUE``. ``failed``:
    whether Airflow calls the run failed. ``reported``: words of the report for a state that differs."""

    what: str
    waves: tuple[str, ...]
    skipped: str = ""
    upstream_failed: str = ""
    failed: bool = False
    reported: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Play:
    """A DAG of a file. ``starts``: the instants at which Airflow begins its next runs after ``now``; in Airflow 2, the
    ends of their intervals."""

    file: str
    dag: str
    runs: tuple[Played, ...]
    now: str = "2026-03-02T12:00Z"  # a Monday
    starts: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


PLAYS = (
    Play(
        "etl.dag",
        "clicks_daily",
        starts=("2026-03-03T03:15Z", "2026-03-04T03:15Z", "2026-03-05T03:15Z"),
        events=("at 2026-03-03T03:15Z", "partition clicks dt=2026-03-02"),
        runs=(
            Played("all goes well", ("clean", "sessions devices", "report", "told")),
            Played(
                "sessions fail",
                ("clean", "devices sessions!"),
                upstream_failed="report told",
                failed=True,
            ),
        ),
    ),
    Play(
        "producers.dag",
        "report",
        runs=(
            Played(
                "the first supplier is enough",
                ("make",),
                events=("at 2026-03-03T04:00Z", "succeed supplier_a fetch"),
            ),
            Played(
                "so is the second",
                ("make",),
                events=("at 2026-03-02T16:00Z", "succeed supplier_b fetch", "succeed supplier_b load"),
            ),
        ),
    ),
    Play(
        "producers.dag",
        "export",
        runs=(
            Played(
                "prices and stock",
                ("send",),
                events=(
                    *("at 2026-03-02T16:00Z", "succeed supplier_b fetch", "succeed supplier_b load", "none export"),
                    *("at 2026-03-09T06:00Z", "succeed warehouse count"),
                ),
            ),
        ),
    ),
    Play("producers.dag", "warehouse", runs=(), starts=("2026-03-09T06:00Z", "2026-03-16T06:00Z")),
    Play("producers.dag", "supplier_b", runs=(), starts=("2026-03-02T16:00Z", "2026-03-03T16:00Z")),
    Play(
        "sensors.dag",
        "books",
        events=(
            *("at 2026-03-03T02:00Z", "succeed orders load", "at 2026-03-03T06:00Z", "none books"),
            "partition payments day=2026-03-02",
        ),
        runs=(
            Played("all goes well", ("bank rates", "book", "checked", "close")),
            Played("the bank sends nothing", ("bank! rates",), upstream_failed="book checked close", failed=True),
            Played("the check fails", ("bank rates", "book", "checked!"), upstream_failed="close", failed=True),
        ),
    ),
    Play(
        "sends.dag",
        "sends",
        events=("at 2026-03-03T05:30Z",),
        runs=(
            Played("the function ends at once", ("build check", "approve", "totals", "by_name queue topic warm")),
            Played(
                "what follows the function fails",
                ("build! check",),
                upstream_failed="approve by_name queue topic totals warm",
                failed=True,
            ),
        ),
    ),
    Play(
        "cleanup.dag",
        "night",
        starts=("2026-03-02T22:00Z", "2026-03-03T22:00Z"),
        events=("at 2026-03-02T22:00Z",),
        runs=(
            Played("all goes well", ("create", "train", "score backup", "delete"), skipped="give_up alarm"),
            Played(
                "training fails",
                ("create", "train!", "alarm delete"),
                skipped="give_up",
                upstream_failed="score backup",
                failed=True,  # by backup, which is one of the last tasks
            ),
            Played(
                "there is no cluster",
                ("create!", "give_up alarm delete"),
                upstream_failed="train score backup",
                failed=True,
            ),
            Played(
                "scoring fails, and all last tasks succeed",
                ("create", "train", "backup score!", "alarm delete"),
                skipped="give_up",
            ),
        ),
    ),
    Play(
        "past.dag",
        "balance",
        starts=("2026-03-03T05:00Z", "2026-03-04T05:00Z", "2026-03-05T05:00Z"),
        events=("at 2026-03-03T05:00Z",),
        runs=(
            Played("all goes well", ("opening", "postings", "closing")),
            Played("the postings fail", ("opening", "postings!"), upstream_failed="closing", failed=True),
        ),
    ),
    Play(
        "past.dag",  # the night on which New York changes its clocks
        "balance",
        now="2026-03-07T12:00Z",
        starts=("2026-03-08T05:00Z", "2026-03-09T04:00Z"),
        runs=(),
    ),
    Play(
        "tenants.dag",
        "tenant_acme",
        starts=("2026-03-03T01:00Z", "2026-03-04T01:00Z"),
        events=("at 2026-03-03T01:00Z",),
        runs=(
            Played("all goes well", ("load", "check")),
            Played("no load", ("load!",), upstream_failed="check", failed=True),
        ),
    ),
    Play("tenants.dag", "tenant_globex", runs=(), starts=("2026-03-03T01:30Z",)),
    Play(
        "tenants.dag",
        "tenant_initech",
        events=("event tenant_initech.requested",),
        runs=(Played("somebody triggers it", ("load", "check", "bill")),),
    ),
    Play(
        "tenants.dag",
        "rollup",
        starts=("2026-03-02T18:00Z", "2026-03-03T00:00Z", "2026-03-03T06:00Z"),
        events=("at 2026-03-02T18:00Z",),
        runs=(Played("all goes well", ("sum_usage sum_cost", "start_initech")),),
    ),
    Play(
        "xcoms.dag",
        "training",
        events=("event training.requested",),
        runs=(
            Played("somebody triggers it", ("features", "fit", "push note")),
            Played("the fit fails", ("features", "fit!"), upstream_failed="push note", failed=True),
        ),
    ),
    Play(
        "names.dag",
        "finance-month-end-close-emea-v2",
        starts=("2026-04-01T07:00Z", "2026-05-01T07:00Z"),
        events=("at 2026-04-01T07:00Z",),
        runs=(
            Played(
                "two tasks at a time",
                (
                    "stage_one_of_the_migration-load_customer_master_data_from_the_o",
                    "stage_one_of_the_migration-load_customer_master_data_from_-2",
                    "check",
                    "check-2 " + "a" * 60,
                    "check__1",
                ),
            ),
        ),
    ),
    Play(
        "sales.mwaa",
        "daily_sales",
        starts=("2026-03-03T04:00Z", "2026-03-04T04:00Z"),
        events=("at 2026-03-03T04:00Z", "partition sales day=2026-03-03"),
        runs=(
            Played("all goes well", ("clean", "report", "cleanup")),
            Played(
                "the job fails",
                ("clean!", "cleanup"),
                upstream_failed="report",
                reported="its run fails after a failure, although cleanup succeeded",
            ),
        ),
    ),
    Play("files.mwaa", "prices_a", runs=(), starts=("2026-03-03T00:00Z",)),
    Play("files.mwaa", "prices_b", runs=(), starts=("2026-03-04T13:00Z", "2026-03-11T13:00Z")),
    Play(
        "weekday.dag",
        "sales",
        starts=("2026-03-03T04:00Z", "2026-03-04T04:00Z"),
        events=("at 2026-03-03T04:00Z",),
        runs=(
            Played(
                "a working day",
                (
                    'working_day={"continue":true}',
                    'by_day={"branch":"delta"}',
                    "delta",
                    'what_changed={"branch":["prices","stock"]}',
                    "prices stock",
                    "publish",
                ),
                skipped="full",
            ),
            Played(
                "a weekend on which only prices change",
                (
                    'working_day={"continue":true}',
                    'by_day={"branch":["full"]}',
                    "full",
                    'what_changed={"branch":["prices"]}',
                    "prices",
                    "publish",
                ),
                skipped="delta stock",
            ),
            Played(
                "a day on which nothing changes",
                (
                    'working_day={"continue":true}',
                    'by_day={"branch":["full"]}',
                    "full",
                    'what_changed={"branch":["nothing"]}',
                    "publish",
                ),
                skipped="delta prices stock",
            ),
            Played(
                "a holiday",
                ('working_day={"continue":false}',),
                skipped="by_day full delta what_changed prices stock publish",
            ),
            Played(
                "the load fails",
                ('working_day={"continue":true}', 'by_day={"branch":["full"]}', "full!"),
                skipped="delta",
                upstream_failed="what_changed prices stock publish",
                failed=True,
            ),
            Played(
                "the branch fails",
                ('working_day={"continue":true}', "by_day!"),
                upstream_failed="full delta what_changed prices stock publish",
                failed=True,
            ),
        ),
    ),
    Play("weekday.dag", "sales", now="2026-03-28T12:00Z", starts=("2026-03-29T03:00Z",), runs=()),  # summer time
    Play(
        "mapped.dag",
        "files",
        starts=("2026-03-02T13:00Z", "2026-03-02T14:00Z"),
        events=("at 2026-03-02T13:00Z",),
        runs=(
            Played(
                "two files and a key",
                ('list_new=["a","b"] region-0 region-1 listed=["k"]', "parse convert", "total"),
            ),
            Played(
                "a file cannot be parsed",
                ('list_new=["a","b"] region-0 region-1 listed=["k"]', "parse! convert", "total"),
                reported="its run fails after a failure, although total succeeded",
            ),
            Played(
                "no list",
                ('list_new! region-0 region-1 listed=["k"]', "convert", "total"),
                upstream_failed="parse",
                reported="its run fails after a failure, although total succeeded",
            ),
        ),
    ),
    Play(
        "groups.dag",
        "warehouse",
        now="2026-03-06T12:00Z",  # a Friday
        starts=("2026-03-09T01:30Z", "2026-03-10T01:30Z"),
        events=("at 2026-03-09T01:30Z",),
        runs=(
            Played(
                "a group is chosen",
                (
                    "extract-get_orders extract-get_stock",
                    "facts",
                    "marts-sales marts-supply",
                    'checks-nulls checks-totals publish_or_not={"branch":"publish"}',
                    "publish-site publish-mail",
                ),
                skipped="hold",
            ),
            Played(
                "a task is chosen",
                (
                    "extract-get_orders extract-get_stock",
                    "facts",
                    "marts-sales marts-supply",
                    'checks-nulls checks-totals publish_or_not={"branch":["hold"]}',
                    "hold",
                ),
                skipped="publish-site publish-mail",
            ),
            Played(
                "a mart fails",
                ("extract-get_orders extract-get_stock", "facts", "marts-sales marts-supply!"),
                upstream_failed="checks-nulls checks-totals publish_or_not publish-site publish-mail hold",
                failed=True,
            ),
        ),
    ),
    Play(
        "warehouse.mwaa",
        "warehouse",
        starts=("2026-03-03T01:30Z", "2026-03-04T01:30Z"),
        events=("at 2026-03-03T01:30Z",),
        runs=(
            Played(
                "publish",
                ("extract-orders", "extract-checks-totals", 'choose={"branch":"publish"}', "publish", "tell"),
                skipped="hold",
            ),
            Played(
                "hold fails",
                ("extract-orders", "extract-checks-totals", 'choose={"branch":"hold"}', "hold!"),
                skipped="publish",
                upstream_failed="tell",
                failed=True,
            ),
        ),
    ),
    Play(
        "files.mwaa",
        "convert",
        events=("at 2026-03-03T00:00Z", "succeed prices_a fetch"),
        runs=(
            Played(
                "two files, two regions",
                ('listed=["a","b"]', "each_file", "regions-0 regions-1", "report-2026"),
            ),
            Played(
                "a copy fails",
                ('listed=["a","b"]', "each_file!"),
                upstream_failed="regions-0 regions-1 report-2026",
                failed=True,
            ),
        ),
    ),
)
