"""The map of Sluice: every Lambda, its event source, and the one flow it calls. No logic lives here.

HTTP    -> api        -> web       schedules, datasets, jobs and runs, over signed requests
minute  -> tick       -> emit      prepare the schedule events of the next minute
                      -> sweep     find whatever is overdue because a hint was lost
S3      -> objects    -> match     an object becomes a partition, an event, and progress of triggers
hints   -> check      -> check     decide a job; claim it; launch or deliver it
EMR     -> run_state  -> complete  a run has moved on: give its slot back, announce its status
states  -> run_state  -> complete  the same of an execution of Step Functions
bus     -> custom     -> match     a custom event, or a change of an alarm, makes progress of triggers
runs    -> lake       -> lake      a run that has ended, out of the table's stream, becomes a line of the history in S3
"""

from typing import Any

from chalice.app import Chalice, CloudWatchEvent, DynamoDBEvent, Rate, SQSEvent

from chalicelib import handlers
from chalicelib.web import openapi
from chalicelib.web.routes import (
    actions,
    backfills,
    dags,
    dead_letters,
    definitions,
    events,
    history,
    jobs,
    messages,
    pools,
    reports,
    runs,
    schedules,
    workers,
)

app = Chalice(app_name="sluice")
app.register_middleware(handlers.measured, "all")
app.register_blueprint(definitions.routes)
app.register_blueprint(schedules.routes)
app.register_blueprint(messages.routes)
app.register_blueprint(actions.routes)
app.register_blueprint(backfills.routes)
app.register_blueprint(dags.routes)
app.register_blueprint(events.routes)
app.register_blueprint(history.routes)
app.register_blueprint(runs.routes)
app.register_blueprint(workers.routes)
app.register_blueprint(dead_letters.routes)
app.register_blueprint(pools.routes)
app.register_blueprint(jobs.routes)
app.register_blueprint(reports.routes)
app.register_blueprint(openapi.routes)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def tick(event: CloudWatchEvent) -> dict[str, int]:
    """Every minute, by an EventBridge rule."""
    return handlers.tick()


@app.on_sqs_message(queue="objects", batch_size=10)
def objects(event: SQSEvent) -> dict[str, Any]:
    """News of objects through SQS: S3 notifications of the lake, and events of the other buckets that are watched."""
    return handlers.objects(event.to_dict())


@app.on_sqs_message(queue="hints", batch_size=10)
def check(event: SQSEvent) -> dict[str, Any]:
    """Hints: something wants a look now."""
    return handlers.hints(event.to_dict(), event.context)


@app.on_cw_event({"source": ["aws.emr-serverless"], "detail-type": ["EMR Serverless Job Run State Change"]})
def run_state(event: CloudWatchEvent) -> str:
    """A state change of an EMR Serverless job run, by an EventBridge rule (best effort). A second rule, in
    `infra/resources/functions.yaml`, brings those of executions of Step Functions."""
    return handlers.run_state(event.to_dict())


@app.on_sqs_message(queue="custom", batch_size=10)
def custom(event: SQSEvent) -> dict[str, Any]:
    """Custom events that somebody put on the account's event bus for a namespace (``source: sluice/<namespace>``), and
    changes of the account's alarms. Rules of EventBridge send them to a queue, where they outlive an outage."""
    return handlers.custom(event.to_dict())


@app.on_dynamodb_record(stream_arn="runs", batch_size=10_000, starting_position="TRIM_HORIZON")
def lake(event: DynamoDBEvent) -> dict[str, Any]:
    """Changes of the runs table: those that are final, by the filters of `infra/resources/functions.yaml`."""
    return handlers.lake(event.to_dict())
