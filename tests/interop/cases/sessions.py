"""After login: SASL requests that are out of place, re-authentication, the end of a session.

Source: KIP-368; org.apache.kafka.common.network.KafkaChannel,
org.apache.kafka.common.security.authenticator.SaslServerAuthenticator (ReauthInfo), kafka.network.Processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from tests.interop.cases import sasl, scram
from tests.interop.cases.frames import CLOSED, PLAIN_ALICE
from tests.interop.cases.sasl import MECHANISMS
from tests.interop.cases.scram import SHA_256, SHA_512, WELCOME, generic, log_in, refused
from tests.interop.cases.versions import ILLEGAL_STATE
from tests.support.protocol.conversation import Case, MadeToken, Stage, expire, renew, unrecorded
from tests.support.protocol.raw import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from tests.support.protocol.wire import Wire

ALREADY: Final = (
    "SaslAuthenticate v{}: error_code=34 error_message='SaslAuthenticate request received after successful "
    "authentication' auth_bytes=b''"
)
SHAKEN: Final = "SaslHandshake v{}: error_code=0 " + MECHANISMS
NOT_NOW: Final = "SaslHandshake v{}: error_code=34 mechanisms=[]"
OTHER_PRINCIPAL: Final = refused("Cannot change principals during re-authentication from User.alice: User.bob")
CHALLENGED: Final = scram.CHALLENGED
AGAIN: Final = (SHAKEN.format(1), CHALLENGED, WELCOME, "works")
UNKNOWN_MECHANISM: Final = "SaslHandshake v{}: error_code=33 " + MECHANISMS
SAY_SO: Final = "the client learns the error, as at a first login"
WORTH_NOTHING: Final = "a revoked token must not work, even on connections that use it"
WITHIN_S: Final = 5.0


def out_of_place() -> Iterator[Case]:
    for where, connect in (("after login", Stage.user), ("without login", Stage.anonymous)):
        for version in (0, 1):
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "GSSAPI", ""):
                yield Case(
                    f"handshake v{version} with {mechanism!r} {where}",
                    asking_sasl(connect, SASL_HANDSHAKE, version, mechanism=mechanism),
                    (NOT_NOW.format(version), "works"),
                )
        for version in range(3):
            lifetime = " session_lifetime=0" if version else ""
            yield Case(
                f"authenticate v{version} {where}",
                asking_sasl(connect, SASL_AUTHENTICATE, version, auth_bytes=PLAIN_ALICE),
                (ALREADY.format(version) + lifetime, "works"),
            )


def asking_sasl(connect: Callable[[Stage], Wire], api_key: int, version: int, **values: Any) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = connect(stage)
        wire.ask(api_key, version, **values)
        wire.works()

    return talk


def again() -> Iterator[Case]:
    yield Case("the same token again", same_token, AGAIN)
    yield Case("the same token again by the other mechanism", other_mechanism, (SHAKEN.format(1), "closed"))
    yield Case(
        "the same token again by bare messages", bare, (SHAKEN.format(0), "bare <r=,s=,i=>", "bare <v=>", "works")
    )
    yield Case("another token of the same owner", other_token, AGAIN)
    yield Case("a token of another owner", other_owner, (SHAKEN.format(1), CHALLENGED, OTHER_PRINCIPAL, "closed"))
    yield Case(
        "a wrong password again", wrong_password, (SHAKEN.format(1), CHALLENGED, generic(prefix="re-"), "closed")
    )
    yield Case(
        "an unknown token again",
        unknown_token,
        (SHAKEN.format(1), generic(prefix="re-"), "closed"),
        (SHAKEN.format(1), CHALLENGED, generic(prefix="re-"), "closed"),
        scram.SAME_PATH,
    )
    yield Case("PLAIN in a session of a token", plain_again, (SHAKEN.format(1), "closed"))
    for version in (0, 1):
        yield Case(
            f"an unknown mechanism again, by handshake v{version}",
            shaking_hands_again("GSSAPI", version),
            CLOSED,
            (UNKNOWN_MECHANISM.format(version), "closed"),
            SAY_SO,
        )
    refused_renewal = "RenewDelegationToken v2: error_code=64 expiry_timestamp=-1"
    yield Case("a token session is one afterwards", still_a_token_session, (refused_renewal,))
    shaken_twice = (NOT_NOW.format(1), NOT_NOW.format(0), "works")
    yield Case("twice within a second", twice, shaken_twice, quick_s=1.0)
    yield Case("twice, a second apart", twice_slowly, AGAIN[1:])
    yield Case(
        "authenticate without handshake", authenticate_alone, (ALREADY.format(2) + " session_lifetime=0", "works")
    )
    yield Case("handshake, then silence", shaking_hands_again(SHA_256, 1, Wire.stays), (SHAKEN.format(1), "open"))
    for api_key, values in ((METADATA, {"topics": ()}), (SASL_HANDSHAKE, {"mechanism": "PLAIN"})):
        yield Case(
            f"API {api_key} while logging in again",
            interrupted(api_key, values),
            (sasl.refusal(api_key, 1), "closed"),
        )
    yield Case(
        "api versions while logging in again", interrupted(API_VERSIONS, {}), (ILLEGAL_STATE.format(0), "closed")
    )
    yield Case("garbage while logging in again", interrupted_by_garbage, CLOSED)
    shorter = WELCOME.replace("86400", "3600")
    yield Case("again after a renewal", new_lifetime, (*AGAIN[:2], shorter, "works"))


def holding(stage: Stage, token: MadeToken | None = None) -> tuple[Wire, MadeToken]:
    token = token or stage.token()
    return stage.holder(token), token


def again_with(wire: Wire, token: MadeToken, password: str = "") -> None:
    wire.handshake(SHA_256)
    log_in(wire, SHA_256, password or token.password, scram.first_of(token))


def same_token(stage: Stage) -> None:
    again_with(*holding(stage))


def other_mechanism(stage: Stage) -> None:
    wire, token = holding(stage)
    wire.handshake(SHA_512)
    log_in(wire, SHA_512, token.password, scram.first_of(token))


def bare(stage: Stage) -> None:
    wire, token = holding(stage)
    wire.handshake(SHA_256, 0)
    first = scram.first_of(token)
    wire.send_frame(first)
    challenge = wire.bare()
    wire.send_frame(scram.by_the_book(scram.Attempt(SHA_256, token.password, first, challenge)))
    wire.bare()
    wire.works()


def other_token(stage: Stage) -> None:
    wire, _ = holding(stage)
    again_with(wire, stage.token(name="other token"))


def other_owner(stage: Stage) -> None:
    wire, _ = holding(stage)
    again_with(wire, stage.token("bob", name="bob's token"))


def wrong_password(stage: Stage) -> None:
    wire, token = holding(stage)
    again_with(wire, token, "wrong")


def unknown_token(stage: Stage) -> None:
    wire, _ = holding(stage)
    again_with(wire, MadeToken("AAAAAAAAAAAAAAAAAAAAAA", b"x"))


def plain_again(stage: Stage) -> None:
    wire, _ = holding(stage)
    wire.handshake("PLAIN")
    wire.authenticate(PLAIN_ALICE)


def shaking_hands_again(
    mechanism: str, version: int, end: Callable[[Wire], None] = Wire.ends
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire, _ = holding(stage)
        wire.handshake(mechanism, version)
        end(wire)

    return talk


def still_a_token_session(stage: Stage) -> None:
    wire, token = holding(stage)
    with unrecorded(wire):
        again_with(wire, token)
    renew(wire, token.hmac)


def twice(stage: Stage) -> None:
    wire, token = holding(stage)
    with unrecorded(wire):
        again_with(wire, token)
    wire.handshake(SHA_256)
    wire.handshake("GSSAPI", 0)
    wire.works()


def twice_slowly(stage: Stage) -> None:
    wire, token = holding(stage)
    with unrecorded(wire):
        again_with(wire, token)
    shake_hands_when_allowed(wire)
    log_in(wire, SHA_256, token.password, scram.first_of(token))


def shake_hands_when_allowed(wire: Wire) -> None:
    deadline = time.monotonic() + WITHIN_S
    with unrecorded(wire):
        while wire.handshake(SHA_256).error_code.value and time.monotonic() < deadline:
            time.sleep(0.05)


def authenticate_alone(stage: Stage) -> None:
    wire, token = holding(stage)
    wire.authenticate(scram.first_of(token))
    wire.works()


def then_silence(stage: Stage) -> None:
    wire, _ = holding(stage)
    wire.handshake(SHA_256)
    wire.stays()


def interrupted(api_key: int, values: dict[str, Any]) -> Callable[[Stage], None]:
    version = 0 if api_key == API_VERSIONS else 1

    def talk(stage: Stage) -> None:
        wire, _ = holding(stage)
        with unrecorded(wire):
            wire.handshake(SHA_256)
        wire.ask(api_key, version, **values)
        wire.ends()

    return talk


def interrupted_by_garbage(stage: Stage) -> None:
    wire, _ = holding(stage)
    with unrecorded(wire):
        wire.handshake(SHA_256)
    wire.send_frame(b"n,,n=x")
    wire.ends()


def new_lifetime(stage: Stage) -> None:
    wire, token = holding(stage)
    owner = stage.user()
    with unrecorded(owner):
        renew(owner, token.hmac, 3_600_000)
    again_with(wire, token)


def ends() -> Iterator[Case]:
    for version in range(3):
        yield ending(f"expiry, by SaslAuthenticate v{version}", expiring(version), ("open", "closed"))
    yield ending("expiry, then logging in again with another token", revived, ("open", *AGAIN))
    yield ending(
        "expiry, then a handshake with an unknown mechanism",
        ended_then_odd,
        ("open", "closed"),
        ("open", UNKNOWN_MECHANISM.format(1), "closed"),
        SAY_SO,
    )
    yield ending("renewed while in use: the session ends as it was told", renewed, ("open", "closed"))
    yield ending("deleted while in use", revoked(-1), ("open", "works"), CLOSED, WORTH_NOTHING)
    yield ending("expired by its owner while in use", revoked(0), ("open", "works"), CLOSED, WORTH_NOTHING)


SHORT_MS: Final = 700
ending: Final = partial(Case, quick_s=2.0)
"""A case about the end of a session: it comes within a second, after a login that has to be quicker."""


def short_session(stage: Stage, version: int = 2) -> tuple[Wire, MadeToken]:
    """A connection whose token lives for less than a second, and has just ended."""
    token = stage.token(lifetime_ms=SHORT_MS)
    ends_at = time.monotonic() + SHORT_MS / 1000
    wire = sasl.chosen(stage, SHA_256)
    with unrecorded(wire):
        log_in(wire, SHA_256, token.password, scram.first_of(token), version=version)
    wire.ends(within_s=max(ends_at + 0.2 - time.monotonic(), 0.01))
    return wire, token


def expiring(version: int) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire, _ = short_session(stage, version)
        wire.works()

    return talk


def revived(stage: Stage) -> None:
    wire, _ = short_session(stage)
    again_with(wire, stage.token(name="new token"))


def ended_then_odd(stage: Stage) -> None:
    wire, _ = short_session(stage)
    wire.handshake("GSSAPI")
    wire.ends()


def revoked(period_ms: int) -> Callable[[Stage], None]:
    """Expire a token in use: what follows reaches all workers within a second."""

    def talk(stage: Stage) -> None:
        wire, token = holding(stage)
        owner = stage.user()
        with unrecorded(owner):
            expire(owner, token.hmac, period_ms)
        wire.ends(within_s=1.0)
        if stage.transcript == ["open"]:
            wire.works()

    return talk


def renewed(stage: Stage) -> None:
    token = stage.token(lifetime_ms=60_000)
    owner = stage.user()
    with unrecorded(owner):
        renew(owner, token.hmac, SHORT_MS)
    ends_at = time.monotonic() + SHORT_MS / 1000
    wire = stage.holder(token)
    with unrecorded(owner):
        renew(owner, token.hmac, 60_000)
    wire.ends(within_s=max(ends_at + 0.2 - time.monotonic(), 0.01))
    wire.works()


CASES: Final = tuple(chain(out_of_place(), again(), ends()))
