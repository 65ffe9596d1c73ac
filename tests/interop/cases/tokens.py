"""The token APIs: every version, the order of the checks, what stands in a refused answer.

Source: KIP-48, KIP-373; kafka.server.KafkaApis (handleCreateTokenRequest and its neighbours),
kafka.server.DelegationTokenManagerZk.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from tests.support.brokers.broker import SECRET_KEY
from tests.support.protocol import bodies
from tests.support.protocol.bodies import PrincipalTexts
from tests.support.protocol.conversation import (
    NEWEST,
    Case,
    MadeToken,
    Stage,
    create,
    describe,
    expire,
    renew,
    sees,
    unrecorded,
)
from tests.support.protocol.raw import CREATE, DESCRIBE, EXPIRE, RENEW
from tests.support.protocol.wire import OVERFLOWN, Wire

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
LARGEST: Final = 2**63 - 1
ALICE: Final = ("User", "alice")
BOB: Final = ("User", "bob")
ANONYMOUS: Final = ("User", "ANONYMOUS")
OVERFLOW: Final = "a period that does not fit becomes the longest that is allowed, and does not expire the token"
NOT_A_TYPE: Final = (
    "ZooKeeper and ACLs keep Type:name; with a colon in the type this is the text of another principal, and a Deny "
    "rule about the owner does not match"
)
LIMITS: Final = "one client must not fill the ZooKeeper that the brokers need; the limits are settings"
NO_TYPE: Final = (
    "the error names the mistake, which is the type of the principal, and the answer names the principal that asked"
)


def principals(owner: tuple[str, str], requester: tuple[str, str] | None = ALICE) -> str:
    shown = f"principal_type={owner[0]!r} principal_name={owner[1]!r}"
    if requester is not None:
        shown += f" token_requester_principal_type={requester[0]!r} token_requester_principal_name={requester[1]!r}"
    return shown


def made(
    version: int = 3,
    owner: tuple[str, str] = ALICE,
    requester: tuple[str, str] | None = ALICE,
    expiry_s: int = 86_400,
    max_s: int = 604_800,
) -> str:
    """The answer to a create that made a token."""
    times = f"issue_timestamp=now+0 expiry_timestamp=now{expiry_s:+d} max_timestamp=now{max_s:+d}"
    who = principals(owner, requester if version == 3 else None)
    return f"CreateDelegationToken v{version}: error_code=0 {who} {times} token_id=<token> hmac=<hmac of token>"


def entry(
    owner: tuple[str, str] = ALICE,
    requester: tuple[str, str] | None = ALICE,
    renewers: Sequence[PrincipalTexts] = (),
    expiry_s: int = 86_400,
    max_s: int = 604_800,
) -> str:
    """A token in the answer to a describe."""
    times = f"issue_timestamp=now+0 expiry_timestamp=now{expiry_s:+d} max_timestamp=now{max_s:+d}"
    shown = ", ".join(f"principal_type={kind!r} principal_name={name!r}" for kind, name in renewers)
    return f"{principals(owner, requester)} {times} token_id=<token> hmac=<hmac of token> renewers=[{shown}]"


def not_made(error: int, version: int = 3, owner: tuple[str, str] = ALICE, requester: tuple[str, str] = ALICE) -> str:
    """The answer to a create that made none."""
    times = "issue_timestamp=-1 expiry_timestamp=-1 max_timestamp=-1"
    who = principals(owner, requester if version == 3 else None)
    return f"CreateDelegationToken v{version}: error_code={error} {who} {times} token_id='' hmac=b''"


def renewed(expiry: str, error: int = 0, version: int = 2) -> str:
    return f"RenewDelegationToken v{version}: error_code={error} expiry_timestamp={expiry}"


def expired(expiry: str, error: int = 0, version: int = 2) -> str:
    return f"ExpireDelegationToken v{version}: error_code={error} expiry_timestamp={expiry}"


def creation() -> Iterator[Case]:
    for version in range(4):
        yield Case(f"create v{version}", creating(version), [made(version)])
    yield Case("id, hmac and instants of a token", details, DETAILS)
    for lifetime_ms in (0, -1, -7, -(2**63), WEEK_MS + 1, LARGEST):
        yield Case(f"lifetime {lifetime_ms}", creating(lifetime_ms=lifetime_ms), [made()])
    yield Case("lifetime of an hour", creating(lifetime_ms=3_600_000), [made(expiry_s=3_600, max_s=3_600)])
    yield Case("lifetime of 2 days", creating(lifetime_ms=2 * DAY_MS), [made(max_s=172_800)])
    yield Case("lifetime of 1 ms", creating(lifetime_ms=1), [made(expiry_s=0, max_s=0)])
    renewers: Sequence[PrincipalTexts] = (BOB, ("User", "carol"), BOB, ("User", ""), ("User", 'a b:*/%+ä€\0\n"\\'))
    yield Case("renewers in their order", describing_what_was_made(renewers), (made(), entry(renewers=renewers)))
    for kind in ("Group", "user", "", " User", "USER"):
        yield Case(f"renewer of type {kind!r}", creating(renewers=(BOB, (kind, "bob"))), [not_made(67)])
        yield Case(f"renewer of type {kind!r} in v1", creating(1, renewers=((kind, "bob"),)), [not_made(67, 1)])


def creating(
    version: int = 3,
    renewers: Sequence[PrincipalTexts] = (),
    lifetime_ms: int = -1,
    owner: PrincipalTexts = (None, None),
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        create(wire, version=version, renewers=renewers, lifetime_ms=lifetime_ms, owner=owner)

    return talk


def details(stage: Stage) -> None:
    """What a transcript rounds or names, exactly."""
    wire = stage.user()
    with unrecorded(wire):
        wire.send_frame(wire.header(CREATE, 3, flexible=True) + bodies.create(3))
        answer = wire.answer(CREATE, 3)
    expected = hmac.digest(SECRET_KEY.encode(), answer.token_id.encode(), hashlib.sha512)
    stage.note(f"id: {bool(re.fullmatch(r'[A-Za-z0-9_-]{22}', answer.token_id))}, hmac: {answer.hmac == expected}")
    lived = answer.max_timestamp - answer.issue_timestamp, answer.expiry_timestamp - answer.issue_timestamp
    stage.note(f"max: {lived[0]}, expiry: {lived[1]}")


DETAILS: Final = ("id: True, hmac: True", "max: 7 days, 0:00:00, expiry: 1 day, 0:00:00")


def describing_what_was_made(
    renewers: Sequence[PrincipalTexts] = (), owner: PrincipalTexts = (None, None)
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        token = create(wire, renewers=renewers, owner=owner)
        with unrecorded(wire):
            answer = describe(wire, None)
        (found,) = (each for each in answer.tokens if each.token_id == token.token_id)
        wire.note(wire.shown(found))

    return talk


def owners() -> Iterator[Case]:
    for kind in (None, "", "User", "Group"):
        for name in (None, ""):
            yield Case(f"owner {kind!r}:{name!r}", creating(owner=(kind, name)), [made()])
    for owner in (BOB, ("Group", "alice"), ("user", "alice"), ("User", "a b\t\n\0:*/%+ä€")):
        yield Case(f"owner {owner!r}", creating(owner=owner), [made(owner=owner)])
        described_owner = (made(owner=owner), entry(owner))
        yield Case(f"owner {owner!r} described", describing_what_was_made(owner=owner), described_owner)
    for owner in (("", "x"), ("T:y", "z")):
        yield Case(
            f"owner {owner!r}", creating(owner=owner), [made(owner=owner)], [not_made(67, owner=owner)], NOT_A_TYPE
        )
    long = ("User", "x" * 20_000)
    yield Case("owner of 20,000 bytes", creating(owner=long), [made(owner=long)], [not_made(44, owner=long)], LIMITS)
    yield Case(
        "owner without a type",
        creating(owner=(None, "bob")),
        [not_made(-1, owner=ANONYMOUS, requester=ANONYMOUS)],
        [not_made(67, owner=("", "bob"))],
        NO_TYPE,
    )


def changes() -> Iterator[Case]:
    there, gone = "error=0 shown", "error=0 not shown"
    for version in range(3):
        yield Case(f"renew v{version}", changing(renew, -1, version), (renewed("now+86400", version=version), there))
        yield Case(f"expire v{version}", changing(expire, 60_000, version), (expired("now+60", version=version), there))
    for period_ms in (-1, -2, -(2**63)):
        yield Case(f"renew for {period_ms}", changing(renew, period_ms), (renewed("now+86400"), there))
        twice_deleted = (expired("now+0"), expired("-1", 62), gone)
        yield Case(f"expire in {period_ms}, then again", changing(expire, period_ms, times=2), twice_deleted)
    for period_ms, expiry in ((0, "+0"), (3_600_000, "+3600"), (WEEK_MS + 1, "+604800"), (2**62, "+604800")):
        yield Case(f"renew for {period_ms}", changing(renew, period_ms), (renewed(f"now{expiry}"), there))
        yield Case(f"expire in {period_ms}", changing(expire, period_ms), (expired(f"now{expiry}"), there))
    for change, answer in ((renew, renewed), (expire, expired)):
        yield Case(
            f"{change.__name__} to 2^63-1",
            changing(change, LARGEST),
            (answer(OVERFLOWN), there),
            (answer("now+604800"), there),
            OVERFLOW,
        )
        for what, token_hmac in (("empty", b""), ("unknown", b"x" * 64), ("that is a token id", b"A" * 22)):
            not_found = tuple(answer("-1", 62, version) for version in range(3))
            yield Case(f"{change.__name__}, hmac {what}", unknown(change, token_hmac), not_found)
    yield Case("a part of an hmac, and more than it", parts, (renewed("-1", 62), renewed("-1", 62), expired("-1", 62)))
    over = (renewed("-1", 66), expired("-1", 66))
    stranger = renewed("-1", 63)
    deleted = (expired("now+0"), renewed("-1", 62))
    yield Case("an expired token", after_expiry, (*over, over[0], stranger, there, *deleted, gone))
    yield Case("a token past its max timestamp", past_max, (*over, deleted[0]))


Change = Callable[[Wire, bytes, int, int], object]


def changing(change: Change, period_ms: int, version: int = 2, times: int = 1) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        token = stage.token()
        wire = stage.user()
        for _ in range(times):
            change(wire, token.hmac, period_ms, version)
        sees(wire, token, None)

    return talk


def until_expired(wire: Wire, token: MadeToken) -> None:
    """Expire a token and wait for the millisecond to pass."""
    with unrecorded(wire):
        while not expire(wire, token.hmac, 0).error_code.value:
            pass


def after_expiry(stage: Stage) -> None:
    token = stage.token(renewers=(BOB,))
    wire, bob, carol = stage.user(), stage.user("bob"), stage.user("carol")
    until_expired(wire, token)
    renew(wire, token.hmac)
    expire(wire, token.hmac, 60_000)
    renew(bob, token.hmac)
    renew(carol, token.hmac)
    sees(wire, token, (ALICE,))
    expire(wire, token.hmac)
    renew(wire, token.hmac)
    sees(wire, token, None)


def past_max(stage: Stage) -> None:
    token = stage.token(lifetime_ms=1)
    wire = stage.user()
    with unrecorded(wire):
        while not renew(wire, token.hmac).error_code.value:
            pass
    renew(wire, token.hmac)
    expire(wire, token.hmac, 60_000)
    expire(wire, token.hmac, -1)


def unknown(change: Change, token_hmac: bytes) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        wire = stage.user()
        for version in range(3):
            change(wire, token_hmac, -1, version)

    return talk


def parts(stage: Stage) -> None:
    token = stage.token()
    wire = stage.user()
    renew(wire, token.hmac[:-1])
    renew(wire, token.hmac + b"\0")
    expire(wire, token.password.encode())


def rights() -> Iterator[Case]:
    not_yours = (renewed("-1", 63), expired("-1", 63))
    of_renewer = (renewed("now+3600"), expired("now+60"), expired("now+0"), "error=0 not shown")
    of_stranger = chain.from_iterable((renewed("-1", 63, v), expired("-1", 63, v)) for v in range(3))
    yield Case("a renewer renews and deletes", by_renewer, of_renewer)
    yield Case("a stranger may neither", by_stranger, (*of_stranger, "error=0 shown"))
    yield Case("the requester may neither", by_requester, (made(owner=BOB), *not_yours, renewed("now+3600")))
    yield Case("the type of an owner counts", by_namesake, (made(owner=("Group", "alice")), *not_yours))
    yield Case("63 before 66", wrong_and_expired, not_yours)


def by_renewer(stage: Stage) -> None:
    token = stage.token(renewers=(BOB,))
    bob = stage.user("bob")
    renew(bob, token.hmac, 3_600_000)
    expire(bob, token.hmac, 60_000)
    expire(bob, token.hmac)
    sees(bob, token, None)


def by_stranger(stage: Stage) -> None:
    token = stage.token(renewers=(BOB,))
    carol = stage.user("carol")
    for version in range(3):
        renew(carol, token.hmac, -1, version)
        expire(carol, token.hmac, -1, version)
    sees(carol, token, None)


def by_requester(stage: Stage) -> None:
    alice = stage.user()
    token = create(alice, owner=BOB)
    renew(alice, token.hmac)
    expire(alice, token.hmac)
    renew(stage.user("bob"), token.hmac, 3_600_000)


def by_namesake(stage: Stage) -> None:
    alice = stage.user()
    token = create(alice, owner=("Group", "alice"))
    renew(alice, token.hmac)
    expire(alice, token.hmac)


def descriptions() -> Iterator[Case]:
    renewers = (BOB, ("User", "carol"))
    for version in range(4):
        answer = f"DescribeDelegationToken v{version}: error_code=0 tokens=[{{}}]"
        requester = ALICE if version == 3 else None
        token = entry(("User", "<owner>"), requester, renewers, 3_600, 3_600).replace("'<owner>'", "<owner>")
        yield Case(f"describe v{version}", described(version), [answer.format(token)])
        yield Case(f"describe v{version} of no owner", describing(version, ()), [answer.format("")])
        stranger = describing(version, (("User", "stranger"),))
        yield Case(f"describe v{version} of a stranger", stranger, [answer.format("")])
    yield Case("who is selected", selected, [SELECTED] * 3)
    yield Case("owners twice", twice, ["1 token"])


SELECTIONS: Final[tuple[tuple[Sequence[PrincipalTexts] | None, str], ...]] = (
    (None, "shown"),
    ((ALICE,), "shown"),
    ((BOB,), "shown"),
    ((("User", "carol"), BOB), "shown"),
    ((("User", "carol"),), "not shown"),
    ((("Group", "alice"),), "not shown"),
    ((("user", "alice"),), "not shown"),
    ((("User", "Alice"),), "not shown"),
    ((), "not shown"),
)
"""Owners that are asked for, and whether a token of alice with the renewer bob is among the answer."""
SELECTED: Final = ", ".join(found for _, found in SELECTIONS)


def describing(version: int, owners: Sequence[PrincipalTexts]) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        describe(stage.user(), owners, version)

    return talk


def described(version: int) -> Callable[[Stage], None]:
    """A token of an owner of its own is described, whole."""

    def talk(stage: Stage) -> None:
        owner = ("User", f"owner of {version} {stage.unique}")
        wire = stage.user()
        stage.names.add(owner[1], "<owner>")
        with unrecorded(wire):
            create(wire, owner=owner, renewers=(BOB, ("User", "carol")), lifetime_ms=3_600_000)
        describe(wire, (owner,), version)

    return talk


def selected(stage: Stage) -> None:
    token = stage.token(renewers=(BOB,))
    for name in ("alice", "bob", "carol"):
        wire = stage.user(name)
        with unrecorded(wire):
            answers = [describe(wire, owners).tokens for owners, _ in SELECTIONS]
        found = [any(each.token_id == token.token_id for each in tokens) for tokens in answers]
        stage.note(", ".join("shown" if each else "not shown" for each in found))


def twice(stage: Stage) -> None:
    owner = ("User", f"owner of two {stage.unique}")
    wire = stage.user()
    with unrecorded(wire):
        create(wire, owner=owner, renewers=(owner,))
        answer = describe(wire, (owner, owner))
    stage.note(f"{len(answer.tokens)} token")


def refusals() -> Iterator[Case]:
    """64 comes first: without a login, and with the login of a token, nothing else is looked at."""
    for where, connect, who in (("without login", Stage.anonymous, ANONYMOUS), ("by token", token_holder, ALICE)):
        answers: dict[int, Callable[[int], str]] = {
            CREATE: partial(not_made, 64, owner=who, requester=who),
            RENEW: lambda version: renewed("-1", 64, version),
            EXPIRE: lambda version: expired("-1", 64, version),
            DESCRIBE: lambda version: f"DescribeDelegationToken v{version}: error_code=64 tokens=[]",
        }
        for api_key, answer in answers.items():
            for version in range(NEWEST[api_key] + 1):
                yield Case(
                    f"API {api_key} v{version} {where}",
                    refused(connect, api_key, version),
                    (answer(version), "works"),
                )
        odd = bodies.create(3, [("Group", "x")], owner=("Group", "y"))
        yield Case(
            f"64 before 67 {where}",
            refused(connect, CREATE, 3, odd),
            (not_made(64, owner=("Group", "y"), requester=who), "works"),
        )
        yield Case(
            f"owner without a type {where}",
            refused(connect, CREATE, 3, bodies.create(3, owner=(None, "y"))),
            (not_made(-1, owner=ANONYMOUS, requester=ANONYMOUS), "works"),
            (not_made(64, owner=("", "y"), requester=who), "works"),
            NO_TYPE,
        )


def token_holder(stage: Stage) -> Wire:
    return stage.holder(stage.token())


def refused(
    connect: Callable[[Stage], Wire], api_key: int, version: int, body: bytes | None = None
) -> Callable[[Stage], None]:
    good = {
        CREATE: bodies.create(version),
        RENEW: bodies.change(version, b"x", -1),
        EXPIRE: bodies.change(version, b"x", -1),
        DESCRIBE: bodies.describe(version, None),
    }

    def talk(stage: Stage) -> None:
        wire = connect(stage)
        flexible = version >= bodies.FIRST_FLEXIBLE
        wire.send_frame(wire.header(api_key, version, flexible=flexible) + (good[api_key] if body is None else body))
        wire.answer(api_key, version)
        wire.works()

    return talk


def wrong_and_expired(stage: Stage) -> None:
    token = stage.token()
    until_expired(stage.user(), token)
    carol = stage.user("carol")
    renew(carol, token.hmac)
    expire(carol, token.hmac, 0)


CASES: Final = tuple(chain(creation(), owners(), changes(), rights(), descriptions(), refusals()))
