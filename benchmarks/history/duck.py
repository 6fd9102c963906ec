"""The two jobs on Sluice's own history, once more in DuckDB: how far Spark is from the fastest on one machine.

    python -m benchmarks.history.duck compact RAW OUTPUT        # raw lines of a day to Parquet
    python -m benchmarks.history.duck report COMPACT OUTPUT     # Parquet to the report, a row for each workflow

Each is a process of its own, as a Spark job is, with the same bound of memory. It reads what Spark's job reads, and its
output has the same rows and columns. `compared` checks that: percentiles within the accuracy of Spark's sketch, sums of
floating-point numbers within `NEAR`, and everything else exactly. DuckDB writes no JSON for the API and no versions of
a day.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.history.submit import HEAP, JOBS, LIBRARY, Submitted
from benchmarks.machine import ROOT

MEASURES = {"lateness": "lateness_ms", "duration": "duration_ms", "waited": "waited_ms"}
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
SKETCH = 1 / 10_000  # the accuracy of Spark's percentiles, as a share of the rows
NEAR = 1e-6
TYPES = {"string": "VARCHAR", "int": "INTEGER", "long": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}
STATES = ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")
NOT_RUN = ("SKIPPED", "COALESCED", "DROPPED", "EXPIRED", "ABORTED")
KEYS = ("namespace", "workflow")
# Columns that may differ where two runs are equally slow, or failed in the same millisecond.
CHOSEN = ("slowest_run", "last_failed_run", "last_failure")


def line_columns() -> dict[str, str]:
    """The columns of a raw line and their types in DuckDB, from the schema of the Spark job."""
    found = re.findall(r"(\w+) (map<string, \w+>|\w+)(?:, |$)", _days().LINE_SCHEMA)
    return {name: TYPES.get(kind) or _map_of(kind) for name, kind in found}


def _map_of(kind: str) -> str:
    """The type in DuckDB of a map of Spark, such as ``map<string, long>``."""
    return f"MAP(VARCHAR, {TYPES[kind.partition(', ')[2].rstrip('>')]})"


def instant_columns() -> list[str]:
    return list(_days().INSTANTS)


def _days() -> Any:
    """The module that the two Spark jobs share. A job imports it and its library from their folders."""
    for folder in (JOBS, LIBRARY.parent):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    return importlib.import_module("history_days")


def compact(raw: str, output: str) -> dict[str, Any]:
    """One row for each (kind, id, attempt), that of the highest ``rev``, in as many files as there are threads."""
    connection = _connected(output)
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in line_columns().items())
    instants = ", ".join(f"epoch_ms({name}) AS {name}" for name in instant_columns())
    begun = time.perf_counter()
    connection.execute(f"""
        COPY (
            SELECT * REPLACE ({instants})
            FROM read_json('{raw}/**/*.json.gz', format = 'newline_delimited', columns = {{{columns}}},
                           hive_partitioning = false)
            WHERE id IS NOT NULL AND kind IS NOT NULL
            QUALIFY row_number() OVER (
                PARTITION BY kind, id, attempt
                ORDER BY rev DESC, ended_at DESC NULLS LAST, claimed_at DESC NULLS LAST) = 1
        ) TO '{output}' (FORMAT parquet, PER_THREAD_OUTPUT true)
    """)
    return {"seconds": round(time.perf_counter() - begun, 2), "output": output}


def report(compacted: str, output: str) -> dict[str, Any]:
    """The report of a day without a week before: as `jobs/history_report.py`, with exact percentiles."""
    connection = _connected(output)
    begun = time.perf_counter()
    connection.execute(f"COPY ({_report_of(compacted)}) TO '{output}' (FORMAT parquet)")
    return {"seconds": round(time.perf_counter() - begun, 2), "output": output}


def _report_of(compacted: str, room: float = 0.0) -> str:
    """The query of the report. With ``room``, also the percentiles of the ranks that are this share of the rows lower
    and higher."""
    shares = {
        f"{share}_ms{end}": min(max(value + by, 0.0), 1.0)
        for share, value in SHARES.items()
        for end, by in ({"": 0.0, "_least": -room, "_most": room} if room else {"": 0.0}).items()
    }
    is_run = "kind = 'run'"
    failed = f"CASE WHEN {is_run} AND state = 'FAILED' THEN ended_at END"
    counted = [f"count(*) FILTER ({is_run} AND state = '{state}') AS {state.lower()}" for state in STATES]
    measured = [
        part
        for name, column in MEASURES.items()
        for part in (
            f"quantile_disc({column}, {list(shares.values())}) AS {name}s",
            f"max({column}) AS {name}_max_ms",
        )
    ]
    named = [f"{name}s[{at}] AS {name}_{share}" for name in MEASURES for at, share in enumerate(shares, 1)]
    excluded = ", ".join(f"{name}s" for name in MEASURES)
    return f"""
        WITH runs AS (
            SELECT * REPLACE (regexp_replace(workflow, '\\.~[^.]+$', '.~') AS workflow)
            FROM '{compacted}/*.parquet' WHERE kind = 'run' AND target IS DISTINCT FROM 'dag'
        ),
        owners AS (SELECT schedule, arg_max(workflow, claimed_at) AS owner FROM runs GROUP BY schedule),
        records AS (
            SELECT h.* REPLACE (coalesce(owner, '') AS workflow)
            FROM '{compacted}/*.parquet' h LEFT JOIN owners USING (schedule) WHERE kind = 'record'
        ),
        everything AS (FROM runs UNION ALL BY NAME FROM records),
        timed AS (
            SELECT *, CASE WHEN {is_run} THEN
                epoch_ms(ended_at) - epoch_ms(coalesce(started_at, start_requested_at, claimed_at)) END AS duration_ms
            FROM everything
        ),
        totals AS (
            SELECT namespace, workflow,
                count(*) FILTER ({is_run} AND state <> 'RETRYING') AS runs,
                count(*) FILTER ({is_run}) AS attempts,
                count(*) FILTER ({is_run} AND attempt > 1) AS retries,
                {", ".join(counted)},
                coalesce(sum(count) FILTER (NOT {is_run} AND state IN {NOT_RUN}), 0)::BIGINT AS not_run,
                {", ".join(measured)},
                sum(CASE WHEN coalesce(missed_start, missed_end) IS NOT NULL
                    THEN coalesce(missed_start::INT, 0) + coalesce(missed_end::INT, 0) END)::BIGINT AS sla_misses,
                sum(vcpu_hours) AS vcpu_hours, sum(memory_gb_hours) AS memory_gb_hours,
                round(sum(cost_usd), 6) AS cost_usd,
                arg_max(id, duration_ms) AS slowest_run,
                arg_max(id, {failed}) AS last_failed_run, arg_max(reason, {failed}) AS last_failure
            FROM timed GROUP BY namespace, workflow
        )
        SELECT * EXCLUDE ({excluded}), {", ".join(named)},
            CASE WHEN succeeded + failed > 0 THEN round(succeeded / (succeeded + failed), 6) END AS success_rate
        FROM totals ORDER BY namespace, workflow
    """


def compared(spark: dict[str, str], duck: dict[str, str]) -> None:
    """Raise RuntimeError unless both engines have written the same. ``spark`` and ``duck``: the folders of ``compact``
    and of ``report``."""
    connection = duckdb.connect()
    hashes = {name: _content(connection, of["compact"]) for name, of in (("spark", spark), ("duck", duck))}
    if hashes["spark"] != hashes["duck"]:
        raise RuntimeError(f"expected equal compactions, got rows and hashes {hashes}")
    connection.execute(f"CREATE VIEW ours AS FROM '{spark['report']}/*.parquet'")
    (least,) = connection.execute("SELECT min(attempts) FROM ours").fetchall()[0]
    connection.execute(f"CREATE TABLE theirs AS {_report_of(duck['compact'], SKETCH + 1 / max(least or 1, 1))}")
    rows, others = (connection.execute(f"SELECT count(*) FROM {view}").fetchall()[0][0] for view in ("ours", "theirs"))
    names = [name for name in _columns(connection, "theirs") if name in _columns(connection, "ours")]
    differing = {name: count for name in names if name not in CHOSEN and (count := _differences(connection, name))}
    if rows != others or differing:
        raise RuntimeError(f"expected equal reports, got {rows} and {others} rows, and differences in {differing}")


def _content(connection: Any, folder: str) -> tuple[int, int]:
    """The number of rows of a compaction, and a sum over their hashes, which no order of the rows changes."""
    instants = instant_columns()
    columns = [
        f"epoch_ms({name}::TIMESTAMP)" if name in instants else f"{name}::VARCHAR" for name in sorted(line_columns())
    ]
    found = connection.execute(
        f"SELECT count(*), sum(hash({', '.join(columns)})) FROM read_parquet('{folder}/*.parquet')"
    ).fetchall()[0]
    return int(found[0]), int(found[1] or 0)


def _columns(connection: Any, view: str) -> list[str]:
    return [str(row[0]) for row in connection.execute(f"DESCRIBE {view}").fetchall()]


def _differences(connection: Any, name: str) -> int:
    """In how many workflows a column differs. A percentile of Spark has to lie between the exact ones of the ranks that
    its sketch may confuse."""
    kind = connection.execute(f"SELECT typeof({name}) FROM theirs LIMIT 1").fetchall()[0][0]
    if re.fullmatch(r"(lateness|duration|waited)_p\d+_ms", name):
        differs = f"ours.{name} NOT BETWEEN theirs.{name}_least AND theirs.{name}_most"
    elif kind == "DOUBLE":
        differs = f"abs(ours.{name} - theirs.{name}) > {NEAR} * greatest(abs(theirs.{name}), 1)"
    else:
        differs = f"ours.{name} IS DISTINCT FROM theirs.{name}"
    missing = f"(ours.{name} IS NULL) <> (theirs.{name} IS NULL)"
    query = f"SELECT count(*) FROM ours JOIN theirs USING (namespace, workflow) WHERE {differs} OR {missing}"
    if name in KEYS:
        query = "SELECT count(*) FROM theirs ANTI JOIN ours USING (namespace, workflow)"
    return int(connection.execute(query).fetchall()[0][0])


def _connected(output: str) -> Any:
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{HEAP.removesuffix('g')}GB'")
    connection.execute(f"SET temp_directory = '{Path(output).parent}/spilled'")
    connection.execute("SET enable_progress_bar = false")  # stdout has the summary
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def play(job: str, source: str, output: str) -> Submitted:
    """Run a job in a process of its own, and measure it as Spark's process is measured."""
    command = [sys.executable, "-m", "benchmarks.history.duck", job, source, output]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0:
        raise RuntimeError(f"{job} in DuckDB ended with {process.returncode}")
    return Submitted(json.loads(printed), used.ru_maxrss * 1024, used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    job, source, output = sys.argv[1:]
    print(json.dumps({"compact": compact, "report": report}[job](source, output)))
