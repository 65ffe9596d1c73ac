"""ApiVersions: ranges, versions that there are none of, names of client software, when it may come.

Source: KIP-511; org.apache.kafka.common.requests.ApiVersionsRequest,
org.apache.kafka.common.security.authenticator.SaslServerAuthenticator.handleApiVersionsRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from tests.interop.cases.frames import CLOSED, LISTENERS, Connect
from tests.support.protocol import bodies
from tests.support.protocol.conversation import Case, Stage, unrecorded
from tests.support.protocol.raw import API_VERSIONS
from tests.support.protocol.wire import Wire

RANGES: Final = "api_keys=3 17:0-1 18:0-4 36:0-2 38:0-3 39:0-2 40:0-2 41:0-3 60"
ANSWER: Final = "ApiVersions v{}: error_code=0 " + RANGES
TOO_NEW: Final = "ApiVersions v0: error_code=35 api_keys=18:0-4"
BAD_NAME: Final = "ApiVersions v{}: error_code=42 api_keys="
ILLEGAL_STATE: Final = "ApiVersions v{}: error_code=34 api_keys="


def ask(wire: Wire, version: int, name: str | None = "raw", number: str | None = "1.0") -> None:
    """Ask in any version; the answer to one that does not exist is read as v0."""
    flexible = version >= 3
    body = bodies.text(name, flexible=True) + bodies.text(number, flexible=True) + b"\0" if flexible else b""
    wire.send_frame(wire.header(API_VERSIONS, version, flexible=flexible) + body)
    wire.answer(API_VERSIONS, version if 0 <= version <= 4 else 0)


def asking(
    connect: Connect, *versions: int, name: str | None = "raw", number: str | None = "1"
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = connect(stage)
        for version in versions:
            ask(wire, version, name, number)

    return talk


def ranges() -> Iterator[Case]:
    for where, connect in LISTENERS:
        for version in range(5):
            yield Case(f"api versions v{version} {where}", asking(connect, version), [ANSWER.format(version)])
        for version in (5, 99, 32_767, -1):
            yield Case(
                f"api versions v{version} {where}, then v4",
                asking(connect, version, 4),
                (TOO_NEW, ANSWER.format(4)),
            )
    yield Case("api versions v99 twice, then a login", too_new_then_login, (TOO_NEW, TOO_NEW, "works"))
    yield Case(
        "api versions v99 without the tag buffer of its header before login",
        lambda stage: ask_bare(stage.stranger(), 99),
        CLOSED,
    )


def too_new_then_login(stage: Stage) -> None:
    wire = stage.stranger()
    ask(wire, 99)
    ask(wire, 99)
    with unrecorded(wire):
        wire.login_plain("alice", "alice-secret")
    wire.works()


def ask_bare(wire: Wire, version: int) -> None:
    wire.send_frame(wire.header(API_VERSIONS, version, flexible=False))
    wire.answer(API_VERSIONS, 0)


def software_names() -> Iterator[Case]:
    bad = {
        "empty": "",
        "a blank": "a b",
        "not ASCII": "ä",
        "a hyphen at the end": "a-",
        "a dot first": ".a",
        "_": "a_b",
    }
    for where, connect in LISTENERS:
        for what, name in bad.items():
            for version in (3, 4):
                yield Case(
                    f"software name with {what} in v{version} {where}, then a good one",
                    asking_again(connect, version, name, "1"),
                    (BAD_NAME.format(version), ANSWER.format(version)),
                )
        yield Case(
            f"software version empty {where}, then a good one",
            asking_again(connect, 3, "raw", ""),
            (BAD_NAME.format(3), ANSWER.format(3)),
        )
    for name in ("a", "apache-kafka-java", "3", "a.b-c", "A--B"):
        yield Case(f"software name {name}", asking(Stage.stranger, 3, name=name), [ANSWER.format(3)])
    for where, connect in LISTENERS:
        yield Case(f"null software name {where}", asking(connect, 3, name=None), CLOSED)
        yield Case(f"null software version {where}", asking(connect, 4, number=None), CLOSED)


def asking_again(connect: Connect, version: int, name: str, number: str) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = connect(stage)
        ask(wire, version, name, number)
        ask(wire, version)

    return talk


def states() -> Iterator[Case]:
    yield Case("api versions twice before login", asking(Stage.stranger, 0, 0), (ANSWER.format(0), "closed"))
    yield Case("api versions v3 twice before login", asking(Stage.stranger, 3, 4), (ANSWER.format(3), "closed"))
    yield Case("api versions v4, then v99 before login", asking(Stage.stranger, 4, 99), (ANSWER.format(4), "closed"))
    yield Case("api versions twice after login", asking(Stage.user, 0, 3), (ANSWER.format(0), ANSWER.format(3)))
    for version in range(5):
        yield Case(
            f"api versions v{version} during a login",
            during_login(version),
            (ILLEGAL_STATE.format(version), "closed"),
        )
    yield Case("api versions v99 during a login", during_login(99), (ILLEGAL_STATE.format(0), "closed"))
    yield Case("api versions v-1 during a login", during_login(-1), (ILLEGAL_STATE.format(0), "closed"))
    yield Case(
        "api versions with a bad name during a login",
        during_login(3, name=""),
        (ILLEGAL_STATE.format(3), "closed"),
    )
    yield Case("api versions cut short during a login", cut_short_during_login, CLOSED)


def during_login(version: int, name: str = "raw") -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.stranger()
        with unrecorded(wire):
            wire.handshake("PLAIN")
        ask(wire, version, name)
        wire.ends()

    return talk


def cut_short_during_login(stage: Stage) -> None:
    wire = stage.stranger()
    with unrecorded(wire):
        wire.handshake("PLAIN")
    wire.send_frame(wire.header(API_VERSIONS, 3, flexible=True))
    wire.ends()


CASES: Final = tuple(chain(ranges(), software_names(), states()))
