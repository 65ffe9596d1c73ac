"""A followed token file: what is handed over when, and what is said of a file that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import javaproperties
import pytest

from kafka_dt.client import Credentials, settings
from kafka_dt.files import replace_file
from kafka_dt.pipeline.token_file import ApplicationEnded, FollowedToken, HandoverFailed, TokenFileError, read_token
from tests.unit.client.conftest import TOKEN

NEXT = replace(TOKEN, token_id="ZYTAwbuPTwKVcmdwjVXRGw", hmac=bytes(range(1, 65)))


class Spark:
    """Who is handed tokens."""

    def __init__(self, file: Path) -> None:
        self.given: list[Credentials] = []
        self.there = {"0"}
        self.failures: list[Exception] = []
        self.followed = FollowedToken(file, self)

    def executors(self) -> frozenset[str]:
        return frozenset(self.there)

    def give(self, token: Credentials) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.given.append(token)

    def look(self, *before: Callable[[], object]) -> None:
        """Follow the file for as many looks as there are things to do before each."""
        steps: Iterator[Callable[[], object]] = iter(before)

        def wait() -> bool:
            step = next(steps, None)
            if step is not None:
                step()
            return step is None

        self.followed.run(wait)

    @property
    def ids(self) -> list[str]:
        return [token.username for token in self.given]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "token.properties"
    write(file)
    return file


@pytest.fixture
def spark(file: Path) -> Spark:
    started = Spark(file)
    started.followed.start()
    return started


def write(file: Path, token: object = TOKEN, text: str | None = None) -> None:
    replace_file(file, javaproperties.dumps(settings(token, "java")) if text is None else text)  # type: ignore[arg-type]


def nothing() -> None:
    """A look at a file to which nothing has happened."""


def test_the_token_that_is_there_is_handed_over_at_once(spark: Spark) -> None:
    (given,) = spark.given
    assert (given.username, given.password, given.token_auth) == (TOKEN.token_id, TOKEN.hmac_base64, True)


def test_the_next_token_is_handed_over_when_it_stands_in_the_file(spark: Spark, file: Path) -> None:
    spark.look(nothing, lambda: write(file, NEXT), nothing)
    assert spark.ids == [TOKEN.token_id, NEXT.token_id]


def test_a_kubernetes_secret_is_followed_through_its_links(tmp_path: Path) -> None:
    for name, token in (("one", TOKEN), ("two", NEXT)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "token.properties", token)
    current = tmp_path / "..data"
    current.symlink_to("one")
    (tmp_path / "token.properties").symlink_to("..data/token.properties")
    spark = Spark(tmp_path / "token.properties")
    spark.followed.start()

    def turn() -> None:
        (tmp_path / "..new").symlink_to("two")
        (tmp_path / "..new").rename(current)

    spark.look(turn)
    assert spark.ids == [TOKEN.token_id, NEXT.token_id]


def test_the_same_token_written_again_is_not_handed_over(spark: Spark, file: Path) -> None:
    spark.look(lambda: write(file), lambda: write(file, text=file.read_text() + "client.id=me\n"))
    assert spark.ids == [TOKEN.token_id]


def test_executors_that_come_are_given_the_token_that_they_may_have_missed(spark: Spark, file: Path) -> None:
    spark.look(nothing, lambda: spark.there.add("1"), nothing, spark.there.clear, nothing)
    assert spark.ids == [TOKEN.token_id] * 2
    spark.look(lambda: write(file, NEXT), lambda: spark.there.add("2"), nothing)
    assert spark.ids == [TOKEN.token_id] * 2 + [NEXT.token_id] * 2


def test_an_executor_that_comes_while_a_token_is_given_is_given_it_by_the_next_look(spark: Spark, file: Path) -> None:
    def comes_in_between(token: Credentials) -> None:
        spark.given.append(token)
        spark.there.add("late")

    spark.give = comes_in_between  # type: ignore[method-assign]
    spark.look(lambda: write(file, NEXT), nothing, nothing)
    assert spark.ids == [TOKEN.token_id, NEXT.token_id, NEXT.token_id]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("", r"sasl\.mechanism"),
        ("\\u12", "not a file of properties"),
        ("sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config=Scram required password=verysecret", "JAAS"),
        (
            "sasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' username="alice" password="verysecret";',
            "tokenauth",
        ),
    ],
)
def test_a_file_without_a_token_is_refused_by_name_and_without_its_secret(
    file: Path, text: str | None, reason: str
) -> None:
    if text is None:
        file.unlink()
    else:
        write(file, text=text)
    with pytest.raises(TokenFileError, match=reason) as refused:
        read_token(file)
    assert str(file) in str(refused.value)
    assert "verysecret" not in str(refused.value)
    with pytest.raises(TokenFileError):
        Spark(file).followed.start()


def test_a_file_that_goes_bad_is_told_once_and_the_token_stays(
    spark: Spark, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kafka_dt"):
        spark.look(lambda: write(file, text=""), nothing, nothing, lambda: write(file, NEXT))
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "Spark keeps the token it has" in caplog.text
    assert spark.ids == [TOKEN.token_id, NEXT.token_id]
    assert f"Spark has the token {NEXT.token_id}" in caplog.text
    assert NEXT.hmac_base64 not in caplog.text


def test_a_handover_that_fails_is_tried_again(spark: Spark, file: Path) -> None:
    spark.failures = [HandoverFailed("Py4JJavaError"), HandoverFailed("Py4JJavaError")]
    spark.look(lambda: write(file, NEXT), nothing, nothing)
    assert spark.ids == [TOKEN.token_id, NEXT.token_id]


def test_following_ends_with_the_application(spark: Spark, file: Path, caplog: pytest.LogCaptureFixture) -> None:
    spark.failures = [ApplicationEnded()]
    spark.look(lambda: write(file, NEXT), nothing)
    assert spark.ids == [TOKEN.token_id]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
