"""Constructs of the AWS CDK for Sluice: an app of Sluice in a stack.

Example:

    from aws_cdk import App, Stack
    from sluice_cdk import SluiceApp, SluiceAppProvider

    stack = Stack(App(), "orders")
    provider = SluiceAppProvider(stack, "Sluice", api_id="a1b2c3d4e5", namespace="demo", code="out/sluice-app.zip")
    shop = SluiceApp(stack, "Shop", provider=provider, app="shop", document=open("app.yaml").read())
    shop.get_att_string("Plan")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws, CustomResource, Duration, Stack, aws_iam, aws_lambda, aws_logs
from constructs import Construct


class SluiceAppProvider(Construct):
    """The Lambda behind ``Custom::SluiceApp`` for one namespace. ``code`` is the path of ``sluice-app.zip``. ``role``
    signs its requests: an access document of the namespace needs it as an author."""

    def __init__(
        self, scope: Construct, id: str, *, api_id: str, namespace: str, code: str, api_stage: str = "api"
    ) -> None:
        super().__init__(scope, id)
        self.namespace = namespace
        log = aws_logs.LogGroup(self, "Log", retention=aws_logs.RetentionDays.THREE_MONTHS)
        self.function = aws_lambda.Function(
            self,
            "Function",
            description=f"Custom::SluiceApp of namespace {namespace}",
            runtime=aws_lambda.Runtime.PYTHON_3_13,
            architecture=aws_lambda.Architecture.ARM_64,
            handler="sluice.cloudformation.handler",
            code=aws_lambda.Code.from_asset(code),
            memory_size=256,
            timeout=Duration.minutes(15),
            log_group=log,
            environment={"SLUICE_API_URL": f"https://{api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}/{api_stage}"},
            # CloudFormation waits for an answer for an hour. No delivery of a request begins later.
            max_event_age=Duration.hours(1),
            retry_attempts=2,
        )
        api = f"arn:{Aws.PARTITION}:execute-api:{Aws.REGION}:{Aws.ACCOUNT_ID}:{api_id}/{api_stage}/*/v1/namespaces"
        self.function.add_to_role_policy(
            aws_iam.PolicyStatement(
                actions=["execute-api:Invoke"],
                resources=[f"{api}/{namespace}", f"{api}/{namespace}/apps/*"],
            )
        )
        stacks = Stack.of(self).format_arn(service="cloudformation", resource="stack", resource_name="*")
        self.function.add_to_role_policy(
            aws_iam.PolicyStatement(actions=["cloudformation:DescribeStackResource"], resources=[stacks])
        )
        self.role = self.function.role


class SluiceApp(CustomResource):
    """An app of Sluice that lives with the stack. ``document`` is the app document: a text in YAML or JSON, or an
    object. With ``adopt``, an app that exists is taken over, and stays when the stack is deleted."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: SluiceAppProvider,
        app: str,
        document: str | Mapping[str, Any],
        update_schedules: bool | None = None,
        restart: bool = False,
        adopt: bool = False,
    ) -> None:
        # As text, an object keeps its numbers: CloudFormation sends those of an object as texts.
        text = document if isinstance(document, str) else Stack.of(scope).to_json_string(document)
        flags = {"UpdateSchedules": update_schedules, "Restart": restart or None, "Adopt": adopt or None}
        super().__init__(
            scope,
            id,
            resource_type="Custom::SluiceApp",
            service_token=provider.function.function_arn,
            properties={
                "Namespace": provider.namespace,
                "App": app,
                "Document": text,
                **{name: str(flag).lower() for name, flag in flags.items() if flag is not None},
            },
        )
