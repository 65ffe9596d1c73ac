"""Conversations with a server as rows of a table: what a client does, and the transcript that it gets.

    Case("a frame of length 0", lambda stage: stage.user("alice").send_frame(b""), ("closed",))

A `Stage` is one server and one conversation: it opens connections whose lines go into one transcript, makes tokens
and names them. Logins and preparations are not part of the transcript; what follows them is.

A case that is over at once when the connection is closed need not say so: `play` notes how it ended.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kazoo.client import KazooClient

from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.brokers.broker import USERS
from tests.support.protocol import bodies
from tests.support.protocol.bodies import PrincipalTexts
from tests.support.protocol.raw import CREATE, DESCRIBE, EXPIRE, RENEW, ConnectionClosed, LoginRefused
from tests.support.protocol.wire import Names, Wire, instant

NEWEST: Final = {CREATE: 3, RENEW: 2, EXPIRE: 2, DESCRIBE: 3}
ATTEMPTS: Final = 10
"""How often a conversation that depends on time is had at most."""


class Server(Protocol):
    """Who is talked to."""

    @property
    def sasl(self) -> str:
        """host:port of the listener with PLAIN and SCRAM."""

    @property
    def plaintext(self) -> str:
        """host:port of the listener without login."""


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation and how it goes."""

    name: str
    talk: Callable[[Stage], object]
    broker: Sequence[str]
    """The transcript that a real broker gives; kafka-dt gives the same unless `ours` says otherwise."""
    ours: Sequence[str] | None = None
    """The transcript of kafka-dt where it differs on purpose."""
    why: str = ""
    """The reason of the difference."""
    quick_s: float | None = None
    """The time within which it goes so, where it depends on one: a machine that took longer has it once more."""


@dataclass(frozen=True, slots=True)
class MadeToken:
    """A token and what logs in with it."""

    token_id: str
    hmac: bytes

    @property
    def password(self) -> str:
        """The SCRAM password: base64 text of the HMAC."""
        return base64.b64encode(self.hmac).decode()


class Stage:
    """One server, one conversation.

    Args:
        server: who is talked to.
        zookeeper: connected, in the chroot of the server.
    """

    def __init__(self, server: Server, zookeeper: KazooClient) -> None:
        self.zookeeper = zookeeper
        self.transcript: list[str] = []
        self.names = Names()
        self.unique = secrets.token_hex(8)
        """For names that no other conversation has."""
        self._server = server
        self._open = ExitStack()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def stranger(self) -> Wire:
        """A connection before its login."""
        return self._connect(self._server.sasl)

    def anonymous(self) -> Wire:
        """A connection of the listener without login."""
        return self._connect(self._server.plaintext)

    def user(self, name: str = "alice") -> Wire:
        """A connection that logged in with PLAIN."""
        wire = self.stranger()
        with unrecorded(wire):
            wire.login_plain(name, USERS[name])
        return wire

    def holder(self, token: MadeToken, mechanism: str = ScramMechanism.SHA_256) -> Wire:
        """A connection that logged in with a token."""
        wire = self.stranger()
        with unrecorded(wire):
            wire.login_scram(token.token_id, token.password, mechanism, token=True)
        return wire

    def token(
        self,
        owner: str = "alice",
        *,
        renewers: Sequence[PrincipalTexts] = (),
        lifetime_ms: int = -1,
        name: str = "token",
    ) -> MadeToken:
        """A new token that is called `name` in the transcript."""
        wire = self.user(owner)
        with unrecorded(wire):
            return create(wire, renewers=renewers, lifetime_ms=lifetime_ms, name=name)

    def instant(self, timestamp_ms: int) -> str:
        """An instant as it stands in a transcript."""
        return f"<{instant(timestamp_ms)}>"

    def note(self, line: str) -> None:
        """Add a line to the transcript."""
        self.transcript.append(line)

    def _connect(self, address: str) -> Wire:
        return self._open.enter_context(Wire(address, self.names, self.transcript))


def play(case: Case, server: Server, zookeeper: KazooClient) -> list[str]:
    """Have the conversation with a server; gives its transcript."""
    for _ in range(ATTEMPTS - 1):
        begun_s = time.monotonic()
        transcript = _played(case, server, zookeeper)
        if case.quick_s is None or time.monotonic() - begun_s < case.quick_s:
            return transcript
    return _played(case, server, zookeeper)


def _played(case: Case, server: Server, zookeeper: KazooClient) -> list[str]:
    with Stage(server, zookeeper) as stage:
        try:
            case.talk(stage)
        except ConnectionClosed:
            stage.note("closed")
        except LoginRefused as refused:
            stage.note(f"login refused: {refused}")
        except TimeoutError:
            stage.note("silence")
        return stage.transcript


@contextmanager
def unrecorded(wire: Wire) -> Iterator[None]:
    """Leave what happens in the block out of the transcript."""
    before, wire.recording = wire.recording, False
    try:
        yield
    finally:
        wire.recording = before


def create(
    wire: Wire,
    *,
    version: int = 3,
    renewers: Sequence[PrincipalTexts] | None = (),
    lifetime_ms: int = -1,
    owner: PrincipalTexts = (None, None),
    name: str = "token",
) -> MadeToken:
    """Send a CreateDelegationToken and read its answer."""
    body = bodies.create(version, renewers, lifetime_ms, owner)
    wire.send_frame(wire.header(CREATE, version, flexible=version >= bodies.FIRST_FLEXIBLE) + body)
    return created(wire, version, name)


def created(wire: Wire, version: int = 3, name: str = "token") -> MadeToken:
    """Read the answer to a create, and call its token by a name from then on."""
    with unrecorded(wire):
        # To be named, the answer has to be read; to be noted, it has to be named.
        answer = wire.answer(CREATE, version)
    if answer.token_id:
        wire.names.add(answer.token_id, f"<{name}>")
        wire.names.add(answer.hmac, f"<hmac of {name}>")
    wire.note(wire.line(CREATE, version, answer))
    return MadeToken(answer.token_id, answer.hmac)


def renew(wire: Wire, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """Send a RenewDelegationToken and read its answer."""
    return change(wire, RENEW, hmac, period_ms, version)


def expire(wire: Wire, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """Send an ExpireDelegationToken and read its answer."""
    return change(wire, EXPIRE, hmac, period_ms, version)


def change(wire: Wire, api_key: int, hmac: bytes, period_ms: int, version: int) -> Any:
    """Send either and read its answer."""
    header = wire.header(api_key, version, flexible=version >= bodies.FIRST_FLEXIBLE)
    wire.send_frame(header + bodies.change(version, hmac, period_ms))
    return wire.answer(api_key, version)


def describe(wire: Wire, owners: Sequence[PrincipalTexts] | None, version: int = 3) -> Any:
    """Send a DescribeDelegationToken and read its answer, which is noted down whole."""
    header = wire.header(DESCRIBE, version, flexible=version >= bodies.FIRST_FLEXIBLE)
    wire.send_frame(header + bodies.describe(version, owners))
    return wire.answer(DESCRIBE, version)


def sees(wire: Wire, token: MadeToken, owners: Sequence[PrincipalTexts] | None) -> None:
    """Note whether a describe shows a token; others may be there."""
    with unrecorded(wire):
        answer = describe(wire, owners)
    shown = any(each.token_id == token.token_id for each in answer.tokens)
    wire.note(f"error={answer.error_code.value} {'shown' if shown else 'not shown'}")
