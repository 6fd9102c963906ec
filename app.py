"""The map of Sluice: every Lambda, its event source, and the step that it calls. This module has no logic.

HTTP    -> api        -> web       schedules, datasets, jobs and runs, over signed requests
minute  -> tick       -> emit      prepare the fires of the next minute
                      -> sweep     find rows that are overdue because a hint was lost
S3      -> objects    -> ingest    turn an object into a partition and an event, and apply the event to triggers
hints   -> check      -> dispatch  decide a job; claim it; launch or deliver it
bursts  -> burst      -> dispatch  the same for many rows at once: a burst, a block of permits, timers to prepare
EMR     -> run_state  -> complete  apply the state change of a run: release its slot, announce its status
states  -> run_state  -> complete  the same for an execution of Step Functions
bus     -> custom     -> ingest    apply a user's custom event, or the state change of an alarm, to triggers
runs    -> lake       -> export    write a run that has ended, from the table's stream, as a line of the history in S3
runs    -> lineage    -> report    send the events of OpenLineage about a run that has changed, from the same stream
"""

from typing import Any

from chalice.app import Chalice, CloudWatchEvent, DynamoDBEvent, Rate, SQSEvent

from chalicelib import handlers

app = Chalice(app_name="sluice")
app.register_middleware(handlers.measured, "all")
if handlers.serves_routes():
    from chalicelib.web import routing

    routing.register(app)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def tick(event: CloudWatchEvent) -> dict[str, int]:
    """Invoked every minute by an EventBridge rule."""
    return handlers.tick()


@app.on_sqs_message(queue="objects", batch_size=10)
def objects(event: SQSEvent) -> dict[str, Any]:
    """Notifications of new objects from SQS: S3 notifications of the lake, EventBridge events of the other buckets."""
    return handlers.objects(event.to_dict())


@app.on_sqs_message(queue="hints", batch_size=10)
def check(event: SQSEvent) -> dict[str, Any]:
    """Hints from SQS: refs of rows that need attention now."""
    return handlers.hints(event.to_dict(), event.context)


@app.on_sqs_message(queue="burst-hints", batch_size=1)
def burst(event: SQSEvent) -> dict[str, Any]:
    """Hints from SQS for bursts, blocks of permits and large emissions: the work of `check` with more memory."""
    return handlers.hints(event.to_dict(), event.context)


@app.on_cw_event({"source": ["aws.emr-serverless"], "detail-type": ["EMR Serverless Job Run State Change"]})
def run_state(event: CloudWatchEvent) -> str:
    """A state change of an EMR Serverless job run, sent by an EventBridge rule on a best-effort basis.

    A second rule, in `infra/resources/functions.yaml`, sends the status changes of Step Functions executions.
    """
    return handlers.run_state(event.to_dict())


@app.on_sqs_message(queue="custom", batch_size=10)
def custom(event: SQSEvent) -> dict[str, Any]:
    """Custom events that users put on the account's event bus for a namespace (``source: sluice/<namespace>``).

    State changes of the account's CloudWatch alarms come the same way.

    EventBridge rules send them to a queue, where they outlive an outage.
    """
    return handlers.custom(event.to_dict())


@app.on_dynamodb_record(stream_arn="runs", batch_size=10_000, starting_position="TRIM_HORIZON")
def lake(event: DynamoDBEvent) -> dict[str, Any]:
    """Changes of the runs table to final rows, selected by the filters in `infra/resources/functions.yaml`."""
    return handlers.lake(event.to_dict())


@app.on_dynamodb_record(stream_arn="runs", batch_size=100, starting_position="LATEST")
def lineage(event: DynamoDBEvent) -> dict[str, Any]:
    """Changes of runs and records, for events of OpenLineage. The function exists only if they are sent somewhere."""
    return handlers.lineage(event.to_dict(), event.context)
