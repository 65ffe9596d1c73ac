"""The file of upstream users: what it says, when it changes, and what it must not show."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from kafka_dt.client import Credentials
from kafka_dt.config import ConfigError
from kafka_dt.gateway.identities import MappedIdentities, NoIdentity, UpstreamLogin
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol.sasl import ScramMechanism

ALICE = Principal.user("alice")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def section(name: str, user: str, password: str, module: str = SCRAM, more: str = "") -> str:
    return f'"{name}" {{ {module} username="{user}" password="{password}"{more}; }};\n'


def mapped(path: Path, clock: Clock | None = None) -> MappedIdentities:
    return MappedIdentities(path, ScramMechanism.SHA_512, monotonic=clock or Clock())


async def test_each_principal_is_the_user_of_its_section(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(
        section("User:alice", "app-alice", "wonder")
        + section("User:CN=bob,O=x", "bob", "b", PLAIN)
        + section("User:carol", "id", "hmac", more=' tokenauth="true"')
    )
    users = mapped(path)
    assert (await users.login(ALICE)).credentials == Credentials("SCRAM-SHA-512", "app-alice", "wonder")
    bob = await users.login(Principal.user("CN=bob,O=x"))
    assert bob == UpstreamLogin(Credentials("PLAIN", "bob", "b"))
    assert (await users.login(Principal.user("carol"))).credentials.token_auth
    assert "wonder" not in repr(await users.login(ALICE))
    await users.close()


@pytest.mark.parametrize("principal", [Principal.user("Alice"), Principal("Group", "alice"), ANONYMOUS])
async def test_a_principal_without_a_section_is_nobody(tmp_path: Path, principal: Principal) -> None:
    path = tmp_path / "users"
    path.write_text(section("User:alice", "alice", "wonder"))
    with pytest.raises(NoIdentity, match=f'there is no section "{principal}" in'):
        await mapped(path).login(principal)


async def test_a_name_that_does_not_print_does_not_break_a_line(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(section("User:alice", "alice", "wonder"))
    with pytest.raises(NoIdentity) as caught:
        await mapped(path).login(Principal.user("a\nlice"))
    assert str(caught.value) == f'User:a?lice has no identity upstream: there is no section "User:a?lice" in {path}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no principal"),
        ("hush", "not understood at character"),
        (section("alice", "alice", "hush"), 'section 1: its name is no principal, such as "User:alice"'),
        (section("User:a", "a", "b") * 2, "twice"),
        (section("User:a", "", "hush"), r'section 1: there is no username="\.\.\."'),
        (section("User:a", "a", ""), r'section 1: there is no password="\.\.\."'),
        (section("User:a", "a", "hush", "com.example.Other required"), "it needs one login module"),
        ('"User:a" { X required password="hush"; Y required; };', "it needs one login module"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_without_secrets(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "users"
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        mapped(path)
    assert caught.value.key == "kafka.dt.gateway.upstream.identity.file"
    assert str(path) in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        mapped(tmp_path / "users")
    (tmp_path / "users").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        mapped(tmp_path / "users")


def change(path: Path, text: str) -> None:
    """Put a file in its place, as replacing tools do: the inode tells."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


async def test_a_changed_file_is_read_again_within_a_second(tmp_path: Path) -> None:
    path, clock = tmp_path / "users", Clock()
    path.write_text(section("User:alice", "alice", "old"))
    users = mapped(path, clock)
    change(path, section("User:alice", "alice", "new"))
    assert (await users.login(ALICE)).credentials.password == "old"
    clock.now += 1
    logins = await asyncio.gather(*(users.login(ALICE) for _ in range(10)))
    assert {login.credentials.password for login in logins} == {"new"}


async def test_after_a_refusal_the_file_is_looked_at_at_once(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(section("User:alice", "alice", "old"))
    users = mapped(path)
    change(path, section("User:alice", "alice", "new"))
    await users.refused(ALICE, await users.login(ALICE))
    assert (await users.login(ALICE)).credentials.password == "new"


async def test_a_changed_file_that_cannot_be_used_changes_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "users", Clock()
    path.write_text(section("User:alice", "alice", "old"))
    users = mapped(path, clock)
    for text in ("", "hush"):
        change(path, text)
        for _ in range(3):
            clock.now += 1
            assert (await users.login(ALICE)).credentials.password == "old"
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert "hush" not in caplog.text
    change(path, section("User:alice", "alice", "new"))
    clock.now += 1
    assert (await users.login(ALICE)).credentials.password == "new"
