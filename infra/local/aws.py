"""AWS on a laptop: ministack in this process, with the changes that Sluice needs.

    python -m infra.local.aws        # `cloud.py` sets its settings in the environment

- ministack checks rules every 10 s, so `rate(1 minute)` fires every 60 to 70 s. Here it checks every second.
- It checks delayed messages once a second. Here it checks ten times, so that a hint arrives when its delay ends, as in
  AWS.
- It requires a policy for `sqs:SendMessageBatch` and `sns:PublishBatch`, which are no IAM actions: in AWS
  `sqs:SendMessage` and `sns:Publish` allow a batch too.
- It writes its state only when it stops. Here SIGUSR1 writes it too, so that a fresh deployment survives a power cut;
  `down` and `up` do not need this.
- It parses an expression for every item, and each body and number several times, so a query of a large index takes most
  of a second. Here it caches the results, also those of projections; the answers are the same.
- It parses the policies of a role twice for each request. Here it parses the text of a policy once.
- It looks up the caller of a request three times, and checks the policy of a queue for each message of a batch. Here it
  does so once for each request (`identity.py`).
- It evaluates policies for each item of a transaction. Here it evaluates each pair of action and table once: the answer
  is the same, and a transaction of 100 items needs half the CPU.
- It reads each number of an item anew to check it, and looks for numbers in texts. Here it remembers numbers, and
  leaves texts out (`quick_values.py`).
- It sorts and checks a whole partition for each query. Here partitions stay sorted (`sorted_partitions.py`).
- Over a restart it keeps the position of a mapping in a table's stream, but not the stream, and would skip the first
  changes. Here it reads streams from their beginning, which is the start of the process.
- It lets Lambdas and queues invoke each other without end. Here a chain ends where Lambda ends it (`hops.py`).
- It takes a message of a queue as soon as it can be read. Here a mapping with few concurrent invocations gathers the
  messages of a burst first (`gather.py`).
- It ends all processes of a function if one of them is killed while it starts. Here that one ends alone
  (`workers.py`).
- It reads streams in the thread that reads queues, and without a batching window. Here another thread reads them after
  a pause (`streams.py`).
- It refuses a Lambda what its role does not allow, and only the Lambda gets the error. Here each refusal is also logged
  (`refusals.py`).
- It asks nothing of the KMS key with which a table, a queue, a topic or a bucket is encrypted. Here each caller needs
  permission to use it (`keys.py`).
- It accepts its root key with any secret, requests of web pages, and some requests without a signature. Here a guard
  verifies every request (`guard.py`).
- The emulator of EMR Serverless gets the access keys with their secrets and roles (`callers.py`). It verifies
  signatures and enforces the policies of roles.
- It ignores the resource policy in the definition of an API. Here the policy decides about signers of other accounts.
- It runs tasks of ECS in Docker, or not at all. Here their containers are processes (`ecs.py`, `containers.py`).
- Its jobs of AWS Batch succeed at once. Here their containers are processes, too (`batch.py`).
- It accepts every call. Here calls can be throttled as in AWS (`throttle.py`).
"""

import functools
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

_LOG = logging.getLogger("sluice.local")
_RULES_EVERY_SECONDS = 1.0
_QUEUES_EVERY_SECONDS = 0.1
TEXT_FUNCTIONS = ("_tokenize", "_condition_syntax_error", "_ddb_canonicalize_number", "_number_size_bytes")


def main() -> None:
    """Run until SIGTERM."""
    # Imported late: ministack reads its settings and prints a banner at import.
    from ministack import app
    from ministack.core import iam_actions, iam_evaluator, lambda_runtime, persistence, responses
    from ministack.services import (
        apigateway_v1,
        batch,
        cloudwatch_logs,
        dynamodb,
        ecs,
        eventbridge,
        iam,
        kms,
        lambda_svc,
        s3,
        sns,
        sqs,
        sts,
    )
    from ministack.services.cloudformation import provisioners

    from infra.local import batch as local_batch
    from infra.local import (
        callers,
        counts,
        gather,
        guard,
        hops,
        identity,
        keys,
        ports,
        quick_values,
        refusals,
        sorted_partitions,
        streams,
        throttle,
        workers,
    )
    from infra.local import ecs as local_ecs
    from infra.local.layout import Layout

    hops.count(lambda_svc, sqs, provisioners)
    gather.install(lambda_svc, sqs)
    workers.install(lambda_runtime)
    here = f"http://{ports.HOST}:{os.environ['GATEWAY_PORT']}"
    local_ecs.install(ecs, cloudwatch_logs, eventbridge, lambda_runtime, here)
    local_ecs.authorize(iam_actions, responses)
    local_batch.install(batch, cloudwatch_logs, eventbridge, lambda_runtime, here)
    local_batch.check_permissions(iam_actions, iam_evaluator, batch)
    services = {"dynamodb": dynamodb, "events": eventbridge, "lambda": lambda_svc, "s3": s3, "sns": sns, "sqs": sqs}
    throttle.install(services, throttle.Switch(Layout().throttle))
    counts.install(services, Layout().counts)
    refusals.install(iam_evaluator, Layout().refusals)
    apigateway_v1._import_rest_api = _with_policy(apigateway_v1._import_rest_api)
    keys.install(iam_evaluator, eventbridge, sqs, keys.Keys(iam_evaluator, kms, dynamodb, sqs, s3, sns))
    keys.tell_senders(sqs, sns)
    root = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    callers.install(sts, iam, (lambda_runtime, lambda_svc), Layout().callers, root[1])
    known = callers.secret_of(sts, iam, *root)
    app.app = guard.before_asgi(app.app, guard.Guard(int(os.environ["GATEWAY_PORT"]), known, "/_ministack/ready"))
    _remember(dynamodb, iam_actions)
    iam_evaluator.parse_policy_document = _parsed_once(iam_evaluator.parse_policy_document)
    quick_values.install(dynamodb)
    identity.install(iam_evaluator, iam_actions, sqs)
    sorted_partitions.install(dynamodb)  # after the caches, which it uses
    _read_streams_from_their_beginning(lambda_svc)
    streams.install(lambda_svc, dynamodb)
    # ministack holds hundreds of thousands of rows: a full garbage collection every few seconds would pause all
    # requests.
    gc.set_threshold(50_000, 50, 1_000)
    eventbridge._SCHEDULER_TICK_INTERVAL = _RULES_EVERY_SECONDS
    iam_actions.extract_iam_action = _single(iam_actions.extract_iam_action)
    iam_actions.dynamodb_transaction_checks = _check_once(iam_actions.dynamodb_transaction_checks)

    def save() -> None:
        persistence.save_all(app._build_persistence_save_dict())
        _LOG.info("state written")

    def on_signal(number: int, frame: FrameType | None) -> None:
        # In a thread: a signal handler runs inside the event loop, which must not block while files are written.
        threading.Thread(target=save, name="save-state", daemon=True).start()

    def poll_queues() -> None:
        while True:
            time.sleep(_QUEUES_EVERY_SECONDS)
            lambda_svc._esm_wake.set()

    threading.Thread(target=poll_queues, name="poll-queues", daemon=True).start()
    signal.signal(signal.SIGUSR1, on_signal)
    app.main()


def _remember(dynamodb: Any, iam_actions: Any) -> None:
    """Cache the results of pure functions. They depend on their arguments alone, and no caller changes a result
    (tests/local/test_aws_memory.py compares)."""
    for name in TEXT_FUNCTIONS:
        setattr(dynamodb, name, functools.lru_cache(maxsize=4096)(getattr(dynamodb, name)))
    dynamodb._project_item = _projected(dynamodb._project_item)
    # ministack reads the tables in the body of one request twice.
    iam_actions.dynamodb_resource_arns = functools.lru_cache(maxsize=8)(iam_actions.dynamodb_resource_arns)


def _projected(project: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Read a projection once for all items, if each of its paths is a placeholder of an attribute."""

    @functools.lru_cache(maxsize=256)
    def attributes(expression: str, names: tuple[tuple[str, str], ...]) -> tuple[str, ...] | None:
        known = dict(names)
        found = [known.get(path.strip()) for path in expression.split(",")]
        named = tuple(name for name in found if name is not None)
        is_plain = not any(sign in name for name in named for sign in ".[")
        return named if is_plain and len(set(named)) == len(found) else None

    def project_item(item: dict[str, Any], expression: str, names: dict[str, str] | None) -> dict[str, Any]:
        plain = attributes(expression, tuple((names or {}).items())) if expression else None
        if plain is None:
            return project(item, expression, names)
        return {name: item[name] for name in plain if name in item}

    return project_item


def _parsed_once(parse: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """Parse the text of a policy once. No caller changes the statements."""
    of_text = functools.lru_cache(maxsize=512)(parse)
    return lambda document: of_text(document) if isinstance(document, str) else parse(document)


def _read_streams_from_their_beginning(lambda_svc: Any) -> None:
    """Drop positions that were restored with this import, and ignore those of a later restore."""
    positions, restore = lambda_svc._dynamodb_stream_positions, lambda_svc._restore_esm_positions
    positions.clear()

    def all_but_those(kept: Any, data: Any, *more: Any) -> Any:
        return None if kept is positions else restore(kept, data, *more)

    lambda_svc._restore_esm_positions = all_but_those


def _with_policy(import_api: Callable[..., str]) -> Callable[..., str]:
    """Give an API the resource policy of its definition, as API Gateway does.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/openapi-extensions-policy.html
    """

    def import_rest_api(definition: dict[str, Any], data: dict[str, Any] | None = None) -> str:
        policy = definition.get("x-amazon-apigateway-policy")
        return import_api(definition, {**(data or {}), "policy": policy} if policy else data)

    return import_rest_api


def _check_once(checks_of: Callable[..., list[tuple[str, str]]]) -> Callable[..., list[tuple[str, str]]]:
    """Name each permission of a transaction once, an action and a table's ARN, in the order of the items. The first
    that is refused stays the same."""

    def checks(*args: Any, **kwargs: Any) -> list[tuple[str, str]]:
        return list(dict.fromkeys(checks_of(*args, **kwargs)))

    return checks


def _single(action_of: Callable[..., str | None]) -> Callable[..., str | None]:
    """Name the action that a policy has to allow: for a batch call of SQS or SNS, that of the single call.

    https://docs.aws.amazon.com/sns/latest/api/API_PublishBatch.html
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
    """

    def action(*args: Any, **kwargs: Any) -> str | None:
        name = action_of(*args, **kwargs)
        return name.removesuffix("Batch") if name and name.startswith(("sqs:", "sns:")) else name

    return action


if __name__ == "__main__":
    main()
