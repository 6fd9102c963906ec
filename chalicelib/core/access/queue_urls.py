"""The ARN of a queue by its URL."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import urlsplit

OWN = "*"  # the region or account of the stack itself, in an ARN that is made from a name

# The names of the regions of a partition, the domain of its services, and that of its endpoints for IPv4 and IPv6, as
# botocore has them (`partitions.json`).
_PARTITIONS = (
    ("aws-cn", r"cn-\w+-\d", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("aws-us-gov", r"us-gov-\w+-\d", "amazonaws.com", "api.aws"),
    ("aws-eusc", r"eusc-de-\w+-\d", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("aws-iso", r"us-iso-\w+-\d", "c2s.ic.gov", "api.aws.ic.gov"),
    ("aws-iso-b", r"us-isob-\w+-\d", "sc2s.sgov.gov", "api.aws.scloud"),
    ("aws-iso-e", r"eu-isoe-\w+-\d", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("aws-iso-f", r"us-isof-\w+-\d", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    ("aws", r"(?:us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d", "amazonaws.com", "api.aws"),
)
_PATH = r"/(?P<account>\d{12})/(?P<name>[A-Za-z0-9_-]{1,80}(?:\.fifo)?)"


def _urls(region: str, domain: str, dual: str) -> re.Pattern[str]:
    """The URLs of the queues of a partition: with a regional endpoint, also for FIPS and for IPv6, with the former name
    of an endpoint, and with an interface endpoint of a VPC.

    https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
    """
    at, domain, dual = rf"(?P<region>{region})", re.escape(domain), re.escape(dual)
    hosts = (
        rf"sqs(?:-fips)?\.{at}\.(?:{domain}|{dual})",
        rf"{at}\.queue\.{domain}",
        rf"vpce-[a-z0-9-]+\.sqs(?:-fips)?\.{at}\.vpce\.{domain}",
    )
    forms = (host.replace("?P<region>", f"?P<region{number}>") for number, host in enumerate(hosts))
    return re.compile(rf"https://(?:{'|'.join(forms)}){_PATH}", re.ASCII)


@cache  # most Lambdas read no URL of a queue, and to compile these would delay a cold start
def _of_partitions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((partition, _urls(*names)) for partition, *names in _PARTITIONS)


_FIRST = re.compile(rf"https://queue\.amazonaws\.com{_PATH}", re.ASCII)  # us-east-1, by the oldest name


def queue_arn(url: str, endpoint: str = "") -> str:
    """The ARN of a queue by its URL, in the form that SQS gives it; the URL itself if it has none of the known forms.
    ``endpoint`` is the address of an emulator of SQS, whose URLs have no region."""
    for partition, pattern in _of_partitions():
        if (found := pattern.fullmatch(url)) is not None:
            region = next(part for name, part in found.groupdict().items() if name.startswith("region") and part)
            return f"arn:{partition}:sqs:{region}:{found['account']}:{found['name']}"
    if (found := _FIRST.fullmatch(url)) is not None:
        return f"arn:aws:sqs:us-east-1:{found['account']}:{found['name']}"
    if (
        endpoint
        and _address(url) == _address(endpoint)
        and (found := re.fullmatch(f".*://[^/]*{_PATH}", url, re.ASCII))
    ):
        return f"arn:{OWN}:sqs:{OWN}:{found['account']}:{found['name']}"
    return url


def _address(url: str) -> str:
    """Scheme, host and port of a URL, for one address of this machine by either of its names."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".replace("://localhost:", "://127.0.0.1:")
