"""Any call of AWS's API as a target: one call for each run, at least once (W22).

A call whose request has an idempotency token gets the same one in each try and redrive of a run.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from botocore import exceptions as sdk
from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError
from botocore.model import OperationModel

from chalicelib.aws.targets import api_models
from chalicelib.aws.targets.aws_errors import code_of, message_of, refusal
from chalicelib.aws.targets.clients import Clients, MakeClient
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core import ids, results
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import denials, templates
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.log import logger, run_fields
from chalicelib.settings import Settings

# With 3 s to connect, a call ends within `MAX_AWS_CALL`. The delivery policy decides about further tries.
CALL: dict[str, Any] = {"read_timeout": 20, "retries": {"total_max_attempts": 1}}
MAX_CLIENTS = 8  # of the last services; a client takes some MB in memory
# Codes of many services, besides those that `aws_errors` knows. Throttled, with any status:
_THROTTLED = re.compile(
    r"Throttl(ing|ed)|RequestLimitExceeded|SlowDown|TooManyRequests|ProvisionedThroughputExceeded", re.I
)
# The request can never succeed:
_NEVER = (
    *("Validation", "Malformed", "Missing", "Unauthorized", "InvalidInput", "InvalidRequest", "UnknownOperation"),
    *("NoSuch", "Idempotent", "Serialization", "InvalidName"),
)
_NOT_THERE = ("NotFound", "DoesNotExist")  # anywhere in a code
# The SDK finds no address for the call, so nothing was sent.
_NO_ADDRESS = (
    *(sdk.EndpointProviderError, sdk.BaseEndpointResolverError, sdk.InvalidRegionError, sdk.ServiceNotInRegionError),
    *(sdk.UnknownRegionError, sdk.InvalidEndpointConfigurationError, sdk.UnsupportedS3ArnError),
    *(sdk.UnsupportedS3AccesspointConfigurationError, sdk.UnsupportedS3ConfigurationError),
    *(sdk.UnsupportedS3ControlArnError, sdk.UnsupportedS3ControlConfigurationError),
)


class AwsApiTarget(Untracked):
    def __init__(self, make: MakeClient) -> None:
        self._make, self._lock = make, Lock()
        self._clients: OrderedDict[str, Any] = OrderedDict()

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        """Make the call. No exception leaves this method: the other calls of a batch were made, and would be again."""
        target = run.request.target
        try:
            operation = api_models.operation_of(str(target["service"]), str(target["action"]))
            given = templates.fill(target["input"], context, "input")
            request = api_models.request_of(operation, given, token(run))
            api_models.check_written(operation, request)
        except SluiceError as error:
            return Never(f"no call was made: {'; '.join(_problem(each) for each in error.each)}")
        except Exception:
            return _unwritten(run)
        return self._call(run, operation, request)

    def _call(self, run: Run, operation: OperationModel, request: Mapping[str, Any]) -> Answer:
        service = str(run.request.target["service"])
        name = f"{service}:{operation.name}"
        try:
            answer = getattr(self._client(service), xform_name(operation.name))(**request)
            keeps = bool(run.request.target["result"])
            result = results.of_value(api_models.answer_of(operation, answer)) if keeps else results.NONE
            return Started(str(answer["ResponseMetadata"].get("RequestId", "called")), done=True, result=result)
        except ClientError as error:
            return _refusal(name, error)
        except _NO_ADDRESS as error:
            return Never(f"no call was made: there is no address for {name}: {type(error).__name__}")
        except (sdk.ParamValidationError, UnicodeEncodeError):  # their texts show values
            return _unwritten(run)
        except BotoCoreError as error:
            return NoAnswer(f"{name} gave no answer: {error}")
        except Exception as error:
            logger.warning("answer not read", extra={**run_fields(run), "why": type(error).__name__})
            return NoAnswer(f"{name} gave no answer that can be read")

    def _client(self, service: str) -> Any:
        """The client of a service. Calls that are made in parallel share it; only one of them makes it."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make(service, **CALL)
            self._clients.move_to_end(service)
            if len(self._clients) > MAX_CLIENTS:
                self._clients.popitem(last=False)
            return self._clients[service]


def _unwritten(run: Run) -> Never:
    """The answer for a request that cannot be written. Neither the reason nor the log shows a value."""
    logger.warning("call not made: its request cannot be written", extra=run_fields(run))
    hint = "look at what it names, at text that is not Unicode, and at deep JSON"
    return Never(f"no call was made: the SDK cannot write a request of its input; {hint}")


def token(run: Run) -> str:
    """The idempotency token of a run's call: a UUID, as botocore would make one, and as every service takes it."""
    return str(uuid.UUID(ids.digest("call", run.run_id, length=32)))


def _problem(error: SluiceError) -> str:
    return f"{error.field}: {error.message}{f'; {error.hint}' if error.hint else ''}"


def _refusal(name: str, error: ClientError) -> Answer:
    code, message = code_of(error), message_of(error)
    if _THROTTLED.search(code):
        return NotNow(f"{name} refused for now: {code}: {message}")
    answer = refusal(name, error)
    if isinstance(answer, NoAnswer):
        return answer
    known = code.startswith(_NEVER) or code.rpartition(".")[2].startswith(_NEVER)
    if isinstance(answer, Never) or known or any(part in code for part in _NOT_THERE):
        return Never(f"{name} refused the call: {denials.with_remedy(code, message)}")
    return answer


def build(clients: Clients, settings: Settings) -> AwsApiTarget:
    del settings
    return AwsApiTarget(clients.make)
