"""A cluster where no client may act for another principal without an ACL, and sessions have a limit.

Source: KIP-48, KIP-368, KIP-373; kafka.security.authorizer.AclAuthorizer (super.users), `connections.max.reauth.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from tests.interop.cases import scram
from tests.interop.cases.frames import CLOSED, PLAIN_ALICE
from tests.interop.cases.sasl import ACCEPTED, REFUSED, chosen
from tests.interop.cases.scram import CHALLENGED, SHA_256, WELCOME, log_in, refused
from tests.interop.cases.sessions import NOT_NOW, SAY_SO, SHAKEN, UNKNOWN_MECHANISM
from tests.interop.cases.tokens import ALICE, BOB, entry, expired, made, not_made, renewed
from tests.support.protocol.bodies import PrincipalTexts
from tests.support.protocol.conversation import Case, Stage, create, describe, expire, renew, unrecorded
from tests.support.protocol.wire import Wire

LIMIT_MS: Final = 900
"""How long a session of PLAIN lasts: what needs one is over before it ends."""
PROPERTIES: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": False,
    "super.users": "User:admin;User:ANONYMOUS",
    "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": LIMIT_MS,
    "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": 60_000,
}
ADMIN: Final = ("User", "admin")
SHORT: Final = ACCEPTED.format(2) + " session_lifetime=soon"
MINUTE: Final = WELCOME.replace("86400", "60")
REVOKE_ANY: Final = "in an incident, the operators of the cluster must be able to revoke any token"


def rights() -> Iterator[Case]:
    group = ("Group", "alice")
    yield Case("a token for oneself", creating("alice"), [made()])
    yield Case("a token for another", creating("alice", BOB), [not_made(65, owner=BOB)])
    yield Case("a token for a namesake", creating("alice", group), [not_made(65, owner=group)])
    yield Case("65 before 67", creating("alice", BOB, (("Group", "x"),)), [not_made(65, owner=BOB)])
    yield Case("a token by a super user", creating("admin", BOB), [made(owner=BOB, requester=ADMIN)])
    yield Case("who sees a token", seeing, ["alice: 1, bob: 1, carol: 0, admin: 1"])
    of_carol = entry(("User", "carol"), ADMIN)
    described = f"DescribeDelegationToken v3: error_code=0 tokens=[{of_carol}]"
    yield Case("what its owner sees of a token", seen_by_owner, [described])
    not_yours = [expired("-1", 63)]
    yield Case("a super user renews a token of another", changing(renew, -1), [renewed("-1", 63)])
    yield Case(
        "a super user shortens a token of another",
        changing(expire, 60_000),
        not_yours,
        [expired("now+60")],
        REVOKE_ANY,
    )
    yield Case(
        "a super user deletes a token of another", changing(expire, -1), not_yours, [expired("now+0")], REVOKE_ANY
    )


def creating(
    user: str, owner: PrincipalTexts = (None, None), renewers: Sequence[PrincipalTexts] = ()
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        create(stage.user(user), owner=owner, renewers=renewers)

    return talk


def seeing(stage: Stage) -> None:
    token = stage.token(renewers=(BOB,))
    seen = []
    for name in ("alice", "bob", "carol", "admin"):
        wire = stage.user(name)
        with unrecorded(wire):
            tokens = describe(wire, (ALICE,)).tokens
        seen.append(f"{name}: {[each.token_id for each in tokens].count(token.token_id)}")
    stage.note(", ".join(seen))


def seen_by_owner(stage: Stage) -> None:
    owner = ("User", "carol")
    admin = stage.user("admin")
    with unrecorded(admin):
        create(admin, owner=owner)
    carol = stage.user("carol")
    describe(carol, None)
    with unrecorded(carol):
        for each in describe(carol, None).tokens:
            expire(carol, each.hmac)


def changing(change: Callable[[Wire, bytes, int], object], period_ms: int) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        change(stage.user("admin"), stage.token().hmac, period_ms)

    return talk


def sessions() -> Iterator[Case]:
    again = (SHAKEN.format(1), SHORT, "works")
    yield Case("PLAIN with a limit", plain(2), (SHORT, "works"))
    yield Case("PLAIN with a limit, by v0", plain(0), (ACCEPTED.format(0), "works"))
    yield Case("PLAIN again", plain_again, again)
    yield Case("PLAIN again when the session has ended", plain_again_after_the_end, ("open", *again), quick_s=2.0)
    yield Case("PLAIN session that has ended", after_the_end, ("open", "closed"), quick_s=2.0)
    refusals = {b"\0bob\0bob-secret": OTHER_PRINCIPAL, b"\0alice\0wrong": WRONG_PASSWORD}
    for message, answer in refusals.items():
        yield Case(f"PLAIN again with {message!r}", plain_again_with(message), (SHAKEN.format(1), answer, "closed"))
    yield Case("PLAIN twice within a second", plain_twice, (NOT_NOW.format(1), "works"))
    unknown = (UNKNOWN_MECHANISM.format(1), "closed")
    yield Case("PLAIN, then an unknown mechanism", plain_then("GSSAPI"), CLOSED, unknown, SAY_SO)
    yield Case("PLAIN, then SCRAM", plain_then("SCRAM-SHA-256"), (SHAKEN.format(1), "closed"))
    yield Case("a token with a limit", with_token(3_600_000), (CHALLENGED, MINUTE, "works"))
    sooner = MINUTE.replace("60", "40")
    yield Case("a token that ends before the limit", with_token(40_000), (CHALLENGED, sooner, "works"))


OTHER_PRINCIPAL: Final = refused("Cannot change principals during re-authentication from User.alice: User.bob")
WRONG_PASSWORD: Final = REFUSED.format("Authentication failed: Invalid username or password")


def say(wire: Wire, message: bytes, version: int = 2) -> None:
    answer = wire.authenticate(message, version)
    (wire.ends if answer.error_code.value else wire.works)()


def again_with(wire: Wire, message: bytes) -> None:
    wire.handshake("PLAIN")
    say(wire, message)


def plain(version: int) -> Callable[[Stage], None]:
    return lambda stage: say(chosen(stage), PLAIN_ALICE, version)


def plain_again(stage: Stage) -> None:
    again_with(stage.user(), PLAIN_ALICE)


def after_the_end(stage: Stage) -> None:
    wire = stage.user()
    wire.ends(within_s=1.2)
    wire.works()


def plain_again_after_the_end(stage: Stage) -> None:
    wire = stage.user()
    wire.ends(within_s=1.2)
    again_with(wire, PLAIN_ALICE)


def plain_again_with(message: bytes) -> Callable[[Stage], None]:
    return lambda stage: again_with(stage.user(), message)


def plain_twice(stage: Stage) -> None:
    wire = stage.user()
    with unrecorded(wire):
        again_with(wire, PLAIN_ALICE)
    wire.handshake("PLAIN")
    wire.works()


def plain_then(mechanism: str) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        wire.handshake(mechanism)
        if mechanism.startswith("SCRAM"):
            wire.authenticate(b"n,,n=alice,r=x")
        wire.ends()

    return talk


def with_token(lifetime_ms: int) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = stage.token(lifetime_ms=lifetime_ms)
        log_in(chosen(stage, SHA_256), SHA_256, token.password, scram.first_of(token))

    return talk


CASES: Final = tuple(replace(case, quick_s=case.quick_s or LIMIT_MS / 1000) for case in chain(rights(), sessions()))
