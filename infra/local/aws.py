"""AWS on a laptop: ministack in this process, with the nine things it lacks for us.

    python -m infra.local.aws        settings come from the environment, see `cloud.py`

- Its scheduler looks at rules every 10 s, so `rate(1 minute)` fires every 60 to 70 s. Here it looks every second.
- It looks for delayed messages once a second. Here ten times, so that a hint arrives when its delay ends, as in AWS.
- It asks a policy for `sqs:SendMessageBatch`, which is no IAM action: in AWS `sqs:SendMessage` allows the batch too.
- It writes its state when it stops, and only then. Here SIGUSR1 writes it too, so that a fresh deployment survives
  a machine that is switched off; `down` and `up` need nothing of this.
- It reads an expression anew for every item that it looks at, and each body and number several times over, so that a
  query of a large index takes most of a second. Here it remembers what it has read; the answers are the same.
- It keeps how far a mapping has read a table's stream over a restart, but not the stream: the first changes after it
  would be passed over. Here streams are read from their beginning, which is that of the process.
- It lets Lambdas and queues call each other for ever. Here a chain ends where Lambda ends it (`hops.py`).
- It refuses a Lambda what its role does not allow, and only the Lambda hears of it. Here each refusal is written down
  (`refusals.py`), and the emulator of EMR Serverless is told whose keys are whose (`callers.py`).
- It takes every call. Here calls can be refused as AWS refuses what comes too fast (`throttle.py`).
"""

import functools
import gc
import logging
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
    # Imported late: ministack reads its settings at import, and prints a banner.
    from ministack import app
    from ministack.core import iam_actions, iam_evaluator, persistence
    from ministack.services import dynamodb, eventbridge, lambda_svc, s3, sns, sqs, sts
    from ministack.services.cloudformation import provisioners

    from infra.local import callers, hops, refusals, throttle
    from infra.local.layout import Layout

    hops.count(lambda_svc, sqs, provisioners)
    services = {"dynamodb": dynamodb, "events": eventbridge, "lambda": lambda_svc, "s3": s3, "sns": sns, "sqs": sqs}
    throttle.install(services, throttle.Switch(Layout().throttle))
    refusals.install(iam_evaluator, Layout().refusals)
    callers.install(sts, Layout().callers)
    _remember(dynamodb, iam_actions)
    _read_streams_from_their_beginning(lambda_svc)
    # It holds hundreds of thousands of rows: looking through all of them for garbage every few seconds stops everybody.
    gc.set_threshold(50_000, 50, 1_000)
    eventbridge._SCHEDULER_TICK_INTERVAL = _RULES_EVERY_SECONDS
    iam_actions.extract_iam_action = _single(iam_actions.extract_iam_action)

    def save() -> None:
        persistence.save_all(app._build_persistence_save_dict())
        _LOG.info("state written")

    def on_signal(number: int, frame: FrameType | None) -> None:
        # Not here: a signal handler runs inside the event loop, which must not stand still while files are written.
        threading.Thread(target=save, name="save-state", daemon=True).start()

    def look_at_queues() -> None:
        while True:
            time.sleep(_QUEUES_EVERY_SECONDS)
            lambda_svc._esm_wake.set()

    threading.Thread(target=look_at_queues, name="look-at-queues", daemon=True).start()
    signal.signal(signal.SIGUSR1, on_signal)
    app.main()


def _remember(dynamodb: Any, iam_actions: Any) -> None:
    """Remember what pure functions answered. Those named here depend on their arguments alone, and nobody changes what
    they answer (tests/local/test_aws_memory.py compares)."""
    for name in TEXT_FUNCTIONS:
        setattr(dynamodb, name, functools.lru_cache(maxsize=4096)(getattr(dynamodb, name)))
    # One request is asked for the tables in its body twice.
    iam_actions.dynamodb_resource_arns = functools.lru_cache(maxsize=8)(iam_actions.dynamodb_resource_arns)


def _read_streams_from_their_beginning(lambda_svc: Any) -> None:
    """Positions that were restored with this import are dropped, and those of a later restore ignored."""
    positions, restore = lambda_svc._dynamodb_stream_positions, lambda_svc._restore_esm_positions
    positions.clear()

    def all_but_those(kept: Any, data: Any, *more: Any) -> Any:
        return None if kept is positions else restore(kept, data, *more)

    lambda_svc._restore_esm_positions = all_but_those


def _single(action_of: Callable[..., str | None]) -> Callable[..., str | None]:
    """Names the action that a policy has to allow: that of the single call, for a batch call of SQS.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
    """

    def action(*args: Any, **kwargs: Any) -> str | None:
        name = action_of(*args, **kwargs)
        return name.removesuffix("Batch") if name and name.startswith("sqs:") else name

    return action


if __name__ == "__main__":
    main()
