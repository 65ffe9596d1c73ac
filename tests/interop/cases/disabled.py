"""A cluster without a secret key: there are no delegation tokens, and everything says so in its turn.

No client may act for another principal without an ACL, so that error 65 can occur.

Source: KIP-48; kafka.server.KafkaApis (tokenAuthEnabled).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.interop.cases import scram
from tests.interop.cases.sasl import chosen
from tests.interop.cases.scram import AT_FIRST, AT_LAST, SAME_PATH, SHA_256, log_in
from tests.interop.cases.tokens import ALICE, ANONYMOUS, BOB, expired, not_made, renewed
from tests.interop.cases.versions import ANSWER, asking
from tests.support.protocol.bodies import PrincipalTexts
from tests.support.protocol.conversation import Case, MadeToken, Stage, create, describe, expire, renew
from tests.support.protocol.wire import Wire

PROPERTIES: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": False,
    "super.users": "User:admin;User:ANONYMOUS",
    "delegation.token.secret.key": "",
    "connection.failed.authentication.delay.ms": 0,
}
HMAC: Final = b"x" * 64
GROUP: Final = (("Group", "x"),)
DESCRIBED: Final = "DescribeDelegationToken v{}: error_code={} tokens=[]"


def cases() -> Iterator[Case]:
    for where, connect in (("before login", Stage.stranger), ("after login", Stage.user)):
        for version in range(5):
            yield Case(f"api versions v{version} {where}", asking(connect, version), [ANSWER.format(version)])
    for version in range(4):
        yield Case(f"create v{version}", creating(version), [not_made(61, version)])
        yield Case(f"67 before 61 in create v{version}", creating(version, renewers=GROUP), [not_made(67, version)])
        for what, owners in (("all", None), ("no owner", ()), ("alice", (ALICE,))):
            yield Case(
                f"describe v{version} of {what}",
                describing(version, owners),
                [DESCRIBED.format(version, 61)],
            )
    for version in range(3):
        yield Case(f"renew v{version}", changing(renew, version), [renewed("-1", 61, version)])
        yield Case(f"expire v{version}", changing(expire, version), [expired("-1", 61, version)])
    yield Case("65 before 67 and 61", creating(3, owner=BOB, renewers=GROUP), [not_made(65, owner=BOB)])
    yield Case(
        "64 before all others",
        everything_without_login,
        (
            not_made(64, owner=BOB, requester=ANONYMOUS),
            renewed("-1", 64),
            expired("-1", 64),
            DESCRIBED.format(3, 64),
        ),
    )
    yield Case("a login with a token", logging_in, AT_FIRST, AT_LAST, SAME_PATH)


def creating(
    version: int, owner: PrincipalTexts = (None, None), renewers: Sequence[PrincipalTexts] = ()
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        create(stage.user(), version=version, owner=owner, renewers=renewers)

    return talk


def describing(version: int, owners: Sequence[PrincipalTexts] | None) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        describe(stage.user(), owners, version)

    return talk


def changing(change: Callable[[Wire, bytes, int, int], object], version: int) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        change(stage.user(), HMAC, -1, version)

    return talk


def everything_without_login(stage: Stage) -> None:
    wire = stage.anonymous()
    create(wire, owner=BOB, renewers=GROUP)
    renew(wire, HMAC)
    expire(wire, HMAC)
    describe(wire, None)


def logging_in(stage: Stage) -> None:
    token = MadeToken("AAAAAAAAAAAAAAAAAAAAAA", HMAC)
    log_in(chosen(stage, SHA_256), SHA_256, token.password, scram.first_of(token))


CASES: Final = tuple(cases())
