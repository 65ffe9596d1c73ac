"""What unmodified Java clients make of a create that a limit refuses: an error that says so, and no endless retry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker import USERS
from tests.support.java.properties import plain
from tests.support.java.reference_client import JavaClientError, JavaSession, ReferenceClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import on_this_machine
from tests.support.zookeeper.server import make_chroot

ALICE, BOB = plain("alice", USERS["alice"]), plain("bob", USERS["bob"])
LIMITS = {
    "kafka.dt.tokens.per.owner.max": 1,
    "kafka.dt.token.creates.per.minute.max": 3,
    "kafka.dt.token.renewers.max": 1,
    "kafka.dt.workers": 1,
}
AT_ONCE_S = 10.0
"""Much less than the 60 s for which a client retries."""


@pytest.fixture
def limited(zookeeper_connect: str, tmp_path: Path) -> Iterator[KafkaDt]:
    connect = make_chroot(zookeeper_connect.partition("/")[0], "limits")
    with KafkaDt(tmp_path, {**server_properties(connect), **LIMITS}) as server:
        yield server


@pytest.fixture
def alice(java_client: ReferenceClient, limited: KafkaDt) -> Iterator[JavaSession]:
    with java_client.open(limited.sasl, ALICE) as session:
        yield session


def refused(session: JavaSession, renewers: tuple[str, ...] = ()) -> str:
    """Create a token that is refused; returns the class of Java's error."""
    begun = time.monotonic()
    with pytest.raises(JavaClientError) as error:
        session.create(renewers=renewers)
    assert time.monotonic() - begun < on_this_machine(AT_ONCE_S)
    return error.value.kind


def test_a_java_client_is_told_of_each_limit_at_once_and_goes_on(alice: JavaSession) -> None:
    assert refused(alice, ("User:bob", "User:carol")) == "PolicyViolationException"
    created = alice.create()
    assert refused(alice) == "PolicyViolationException"
    names = {refused(alice) for _ in range(5)}
    assert names <= {"PolicyViolationException", "ThrottlingQuotaExceededException"}
    assert "ThrottlingQuotaExceededException" in names
    begun = time.monotonic()
    alice.expire(created.hmac)
    assert time.monotonic() - begun < on_this_machine(AT_ONCE_S)


def test_the_token_tool_says_that_a_policy_refuses_it(tools: KafkaTools, limited: KafkaDt) -> None:
    options = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:a")
    tool = tools.delegation_tokens(limited.sasl, BOB, *options, "--renewer-principal", "User:b")
    assert tool.status == 1
    assert "PolicyViolationException" in tool.stderr
