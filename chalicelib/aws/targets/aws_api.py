"""Any call of AWS's API as a target: one call for each run, at least once (W22).

A call whose request has an idempotency token gets the same one in each try and redrive of a run.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from threading import Lock
from typing import Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from chalicelib.aws.targets import api_models
from chalicelib.aws.targets.aws_errors import code_of, message_of, refusal
from chalicelib.aws.targets.clients import Clients, MakeClient
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core import ids, results
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import denials, templates
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, Started
from chalicelib.settings import Settings

# With 3 s to connect, a call ends within `MAX_AWS_CALL`. The delivery policy decides about further tries.
CALL: dict[str, Any] = {"read_timeout": 20, "retries": {"total_max_attempts": 1}}
# The request can never succeed, besides the errors that `aws_errors` knows: these are of many services.
_NEVER = ("Validation", "Malformed", "Missing", "Unauthorized", "InvalidInput", "InvalidRequest", "UnknownOperation")


class AwsApiTarget(Untracked):
    def __init__(self, make: MakeClient) -> None:
        self._make, self._lock = make, Lock()
        self._clients: dict[str, Any] = {}

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        target = run.request.target
        service, keeps = str(target["service"]), bool(target["result"])
        try:
            operation = api_models.operation_of(service, str(target["action"]))
            given = templates.fill(target["input"], context, "input")
            request = api_models.request_of(operation, given, token(run))
        except SluiceError as error:
            return Never(f"no call was made: {'; '.join(_problem(each) for each in error.each)}")
        name = f"{service}:{operation.name}"
        try:
            answer = getattr(self._client(service), xform_name(operation.name))(**request)
        except ClientError as error:
            return _refusal(name, error)
        except ParamValidationError as error:
            return Never(f"no call was made: {error}")
        except BotoCoreError as error:
            return NoAnswer(f"{name} gave no answer: {error}")
        result = results.of_value(api_models.answer_of(operation, answer)) if keeps else results.NONE
        return Started(str(answer["ResponseMetadata"].get("RequestId", "called")), done=True, result=result)

    def _client(self, service: str) -> Any:
        """The client of a service. Calls that are made in parallel share it; only one of them makes it."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make(service, **CALL)
            return self._clients[service]


def token(run: Run) -> str:
    """The idempotency token of a run's call: a UUID, as botocore would make one, and as every service takes it."""
    return str(uuid.UUID(ids.digest("call", run.run_id, length=32)))


def _problem(error: SluiceError) -> str:
    return f"{error.field}: {error.message}{f'; {error.hint}' if error.hint else ''}"


def _refusal(name: str, error: ClientError) -> Answer:
    answer, code = refusal(name, error), code_of(error)
    short = code.rpartition(".")[2]
    if isinstance(answer, Never | NoAnswer) or not short.startswith(_NEVER):
        return answer
    return Never(f"{name} refused the call: {denials.with_remedy(code, message_of(error))}")


def build(clients: Clients, settings: Settings) -> AwsApiTarget:
    del settings
    return AwsApiTarget(clients.make)
