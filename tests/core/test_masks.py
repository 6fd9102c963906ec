"""What outlives the rows of Sluice shows no secret, and still shows what changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.masks import MASK, mask, masked, text, url
from tests.fuzz.values import no_hang

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
NAMES = ["password", "DB_PASS", "PGPASS", "dbPass", "apiKey", "aws_secret_access_key", "SAS_Signature", "pwd", "DBPWD"]
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SLACK = "xoxb-" + "123456789012-abcdefGHIJKL"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--date", "2026-03-01"], ["--date", MASK]),
        (["--password=hunter2"], ["--password=***"]),
        (["-p", "hunter2", "--dry-run"], ["-p", MASK, "--dry-run"]),
        (["s3://lake/raw/"], [MASK]),
        (["--empty=", ""], ["--empty=", ""]),
        (["-5"], [MASK]),
        (["-Dpassword=hunter2"], ["-Dpassword=***"]),
        (["-Djavax.net.ssl.trustStorePassword=hunter2"], ["-Djavax.net.ssl.trustStorePassword=***"]),
        (["-phunter2Secret"], [MASK]),
        (["--token", "-AbC123dEf456"], ["--token", MASK]),
        (["-AbC123dEf456=="], [MASK]),
    ],
)
def test_arguments_keep_the_names_of_options(given: list[str], shown: list[str]) -> None:
    assert masked({"arguments": given}) == {"arguments": shown}


def test_a_long_value_shows_that_it_has_changed() -> None:
    first, second = (masked({"arguments": [f"s3://lake/raw/orders/{month}/"]}) for month in ("2026-03", "2026-04"))
    assert first != second
    assert first["arguments"][0].startswith(MASK)
    assert masked({"arguments": ["s3://lake/raw/orders/2026-03/"]}) == first


@pytest.mark.parametrize(
    "known",
    [
        "jdbc:postgresql://db/x?user=ada&password={}",
        "host=db.example.com;pin={}",
        "mysql -u root -h db.example.com -p{}",
        '{{"user":"ada","database":"orders","pin":"{}"}}',
        "first-long-value,second-long-value,{}",
    ],
)
def test_a_short_part_of_a_long_value_is_not_found(known: str) -> None:
    """The rest of the value is known, so a fingerprint would tell the right one among a few guesses."""
    assert mask(known.format("1234")) == mask(known.format("4321")) == MASK


def test_lists_and_users_of_addresses_have_no_fingerprint() -> None:
    assert masked({"password": ["1234", "5678", "some longer one"]}) == {"password": MASK}
    assert text("mysql://administrator-of-orders:1234@db") == "mysql://***@db"
    assert mask("dXNlcjpwYXNzMQxyzabc==") != mask("dXNlcjpwYXNzMQxyzabd=="), "padding divides no value"


def test_a_short_value_has_no_fingerprint_by_which_it_is_found() -> None:
    assert mask("hunter2") == mask("123456") == MASK


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://hooks.example.com", "https://hooks.example.com"),
        ("https://hooks.example.com/", "https://hooks.example.com/"),
        ("https://hooks.example.com/a", "https://hooks.example.com/***"),
        ("https://hooks.example.com:8443/a?token=s3cr3t&b", "https://hooks.example.com:8443/***?token=***&***"),
        ("https://ada:hunter2@hooks.example.com/a", "https://***@hooks.example.com/***"),
    ],
)
def test_a_url_keeps_its_host_and_the_names_of_its_query(given: str, shown: str) -> None:
    assert url(given) == shown
    assert masked({"target": {"url": given}}) == {"target": {"url": shown}}


def test_a_changed_path_of_a_webhook_is_seen() -> None:
    first, second = (url(f"https://hooks.slack.com/services/T0/B0/{key}") for key in ("AAAAAAAA", "BBBBBBBB"))
    assert first != second
    assert first.startswith("https://hooks.slack.com/***")
    assert "AAAA" not in first


@pytest.mark.parametrize("secret", [KEY, GITHUB, JWT, SLACK, "glpat-" + "abcdefghij0123456789", "sk_live_" + "a" * 24])
@pytest.mark.parametrize("around", ["{}", "uses {} today", "token:{}, then", "--x={}", "({})"])
def test_a_token_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    shown = text(around.format(secret))
    assert secret not in shown
    assert shown.startswith(around.partition("{}")[0])
    assert shown.endswith(around.partition("{}")[2])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Authorization: Bearer abc123def456", "Authorization: Bearer ***"),
        ("authorization: bearer abc123def456", "authorization: bearer ***"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("Basic dXNlcjpwYXNzMQ==", f"Basic {mask('dXNlcjpwYXNzMQ==')}"),
        ("see https://wiki.example.com/jobs?id=7", "see https://wiki.example.com/jobs?id=***"),
        ("at https://ada:hunter2@db.example.com/x.", "at https://***@db.example.com/x."),
        ("jdbc:postgresql://db:5432/x?user=ada&password=hunter2", "jdbc:postgresql://db:5432/x?user=***&password=***"),
        (
            "jdbc:sqlserver://db;user=ada;Password=hunter2;encrypt=true",
            "jdbc:sqlserver://db;user=ada;Password=***;encrypt=true",
        ),
        ("mongodb://ada:hunter2@db/x", "mongodb://***@db/x"),
        ("call failed: api_key=hunter2, twice", "call failed: api_key=***, twice"),
        ("java -Dpassword=hunter2 -Dx=1", "java -Dpassword=*** -Dx=1"),
        ("-Djavax.net.ssl.trustStorePassword=hunter2", "-Djavax.net.ssl.trustStorePassword=***"),
        ("keyPassword=hunter2 sslpassword=hunter2", "keyPassword=*** sslpassword=***"),
        ("PGPASSWORD=hunter2; DBPASSWORD=hunter2", "PGPASSWORD=***; DBPASSWORD=***"),
        ("DB_PASS=hunter2 dbPwd=hunter2", "DB_PASS=*** dbPwd=***"),
        ("clientSecret=hunter2 accessToken='hunter2'", "clientSecret=*** accessToken='***'"),
        ("spark.hadoop.fs.s3a.secret.key=hunter2", "spark.hadoop.fs.s3a.secret.key=***"),
        ("Password: hunter2, user: ada", "Password: ***, user: ada"),
        ('{"db_password": "hunter2", "user": "ada7777"}', '{"db_password": "***", "user": "ada7777"}'),
        ("token:hunter2-of-a-long-name", f"token:{mask('hunter2-of-a-long-name')}"),
    ],
)
def test_a_text_loses_credentials_only(given: str, shown: str) -> None:
    assert text(given) == shown


@pytest.mark.parametrize(
    "plain",
    [
        "the run took 3 s",
        "s3://lake/raw/orders/day=2026-03-01/?a=b",
        "tokens=5 of token_count=7",
        "bypass=true, compass=north, passed=3",
        "arn:aws:sqs:eu-west-1:123456789012:sluice-target-x",
        "demo.flights.clean.1k.0f3a9c7d2b1e4f5a6b7c",
        "Basic authentication is off",
        "the password: a text of 8 characters",
        "secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook-1a2b3c",
        "secret: /teams/demo/hook1",
        "token: https://wiki.example.com/tokens/2026",
        "expected a token: none for 3 days",
        "the bearer of this run",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/sluice-target-orders.fifo",
    ],
)
def test_what_is_no_secret_stays(plain: str) -> None:
    assert text(plain) == plain
    assert masked({"entry_point": plain}) == {"entry_point": plain}


def test_a_private_key_is_masked_to_its_end() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"
    assert "MIIEow" not in text(f"a {key} b")
    assert "MIIEow" not in text(key[:45])


@pytest.mark.parametrize("name", NAMES)
def test_a_field_that_is_named_like_a_secret_is_masked(name: str) -> None:
    assert masked({"spark": {name: "hunter2"}}) == {"spark": {name: MASK}}


@pytest.mark.parametrize("name", ["compass", "bypass", "BYPASS", "passenger_count", "keys", "host"])
def test_another_field_is_shown(name: str) -> None:
    assert masked({"spark": {name: "north"}}) == {"spark": {name: "north"}}


@pytest.mark.parametrize("key", ["spark.executorEnv.HOOK", "spark.emr-serverless.driverEnv.HOOK"])
def test_a_variable_of_the_environment_is_masked(key: str) -> None:
    assert masked({"spark": {key: "T000/B000/x"}}) == {"spark": {key: MASK}}
    assert masked({"spark": {"spark.executor.cores": "4"}}) == {"spark": {"spark.executor.cores": "4"}}


def test_options_of_java_lose_their_passwords() -> None:
    given = {"spark.driver.extraJavaOptions": "-Djavax.net.ssl.keyStorePassword=hunter2 -Dx=1"}
    shown = {"spark.driver.extraJavaOptions": "-Djavax.net.ssl.keyStorePassword=*** -Dx=1"}
    assert masked({"spark": given}) == {"spark": shown}


def test_a_reference_to_a_secret_is_shown() -> None:
    reference = {"ssm": "/sluice-target/demo/key"}
    assert masked({"secret": reference}) == {"secret": reference}
    assert masked({"url": {**reference, "host": "h.example.com"}})["url"]["host"] == "h.example.com"
    assert masked({"properties": {"secret": reference}})["properties"]["secret"].startswith(MASK)


def test_the_reference_of_a_header_is_shown() -> None:
    headers = {"Authorization": {"ssm": "/sluice-target/demo/key"}, "X-Key": {"secrets_manager": "demo-key"}}
    assert masked({"headers": {**headers, "X-Own": "hunter2"}}) == {"headers": {**headers, "X-Own": MASK}}
    assert masked({"properties": {"headers": headers}})["properties"]["headers"]["X-Key"] == {"secrets_manager": MASK}
    assert masked({"headers": {"X-Key": {"value": "hunter2"}}}) == {"headers": {"X-Key": {"value": MASK}}}


def test_the_path_of_a_signing_secret_is_shown() -> None:
    assert masked({"secret": "/sluice-target/demo/sign"}) == {"secret": "/sluice-target/demo/sign"}
    assert masked({"secret": "/hunter2+"}) == {"secret": MASK}
    assert masked({"password": "/hunter2", "properties": {"secret": "/hunter2"}}) == {
        "password": MASK,
        "properties": {"secret": MASK},
    }


def test_the_secrets_of_an_allow_list_are_shown_by_their_names() -> None:
    """An auditor asks who was given which secrets."""
    names = ["arn:aws:ssm:eu-west-1:123456789012:parameter/team-a/*", "arn:aws:secretsmanager:eu-west-1:1:secret:a"]
    assert masked({"secrets": names}) == {"secrets": names}
    assert masked({"secrets": [*names, "hunter2"]})["secrets"].startswith(MASK)
    assert masked({"env": {"secret": names[0]}})["env"]["secret"].startswith(MASK)


@pytest.mark.parametrize("value", [0, False, None, "", [], {}, 5.5])
def test_values_without_text_stay(value: Any) -> None:
    assert masked({"of": value}) == {"of": value}


@pytest.mark.parametrize(
    "part",
    ["eyJ-", "eyJaaaaa.", "https://a?", "-----BEGIN ", "SG.", "xoxb-", "=Bearer ", "https://", "token: ", "token:a"],
)
def test_a_hostile_text_does_not_hang(part: str) -> None:
    with no_hang():
        masked({"description": part * (100_000 // len(part))})


def test_a_masked_document_is_json() -> None:
    json.dumps(masked({"arguments": ("a",), "nested": [{"token": ["a"]}]}))
