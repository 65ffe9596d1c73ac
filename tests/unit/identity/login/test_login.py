"""Logins of all kinds against real machines of both sides; only the store of tokens is a test double."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

import pytest

from kafka_dt.config import Endpoint, Listener, MechanismSettings, SecurityProtocol
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.scram import ScramAccounts
from kafka_dt.identity.login.login import LoggedIn, Login, LoginOutcome, LoginRefused, session_lifetime_ms
from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.identity.mechanisms import MECHANISMS, Accounts, OpenMechanism, Resources, open_mechanisms
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from kafka_dt.identity.revocation import Board, Revocations, board_bytes
from kafka_dt.tokens import DelegationToken, Principal, StoreUnavailable, Token, TokenManager
from kafka_dt_protocol.sasl import (
    GSSAPI,
    OAUTHBEARER,
    PLAIN,
    Challenge,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    derive_credential,
    plain_message,
)
from tests.support.identity.issuer import unsigned

NOW = 1_700_000_000_000
HOUR = 3_600_000
TOKEN_ID = "qe9NVyTyRGKwPVvXpmXvyQ"
HMAC = bytes(range(64))
PASSWORD = base64.b64encode(HMAC).decode()
GENERIC = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
SCRAM = {mechanism.value: mechanism for mechanism in ScramMechanism}


def token(**changes: object) -> Token:
    made = Token(
        token_id=TOKEN_ID,
        owner=Principal("Group", "ops"),
        requester=Principal.user("alice"),
        renewers=(),
        issue_timestamp_ms=NOW - HOUR,
        max_timestamp_ms=NOW + 5 * HOUR,
        expiry_timestamp_ms=NOW + HOUR,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@dataclass
class KnownTokens:
    """The part of a TokenManager that logins use, with what is in memory and what only the store has."""

    cached: dict[str, Token] = field(default_factory=dict)
    stored: dict[str, Token] = field(default_factory=dict)
    stale: bool = False
    down: bool = False
    """Whether the store cannot be asked, while what is in memory still counts."""
    hmacs: tuple[bytes, ...] = (HMAC,)

    def find(self, token_id: str) -> DelegationToken | None:
        if self.stale:
            raise StoreUnavailable("cut off")
        if token_id not in self.cached:
            return None
        return DelegationToken(self.cached[token_id], self.hmacs[0], self.hmacs[1:])

    def can_ask(self, token_id: str | None = None) -> bool:
        del token_id
        return not (self.stale or self.down)

    async def lookup(self, token_id: str) -> DelegationToken | None:
        found = self.find(token_id)
        if found is None and self.down:
            raise StoreUnavailable("it is not connected")
        if token_id in self.stored:
            self.cached[token_id] = self.stored[token_id]
        return self.find(token_id)


@dataclass(eq=False)
class KnownUsers:
    users: dict[tuple[str, ScramMechanism], ScramCredential]

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self.users.get((user, mechanism))

    @cache  # noqa: B019 - the users of a test stay as they are when it has begun to log in
    def iterations(self, mechanism: ScramMechanism) -> Sequence[int]:
        return sorted(credential.iterations for (_, known), credential in self.users.items() if known is mechanism)


class World:
    """Everything that a login needs, and a client to log in with."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.tokens = KnownTokens(cached={TOKEN_ID: token()})
        self.users = KnownUsers(
            {
                ("carol", mechanism): derive_credential(mechanism, "carol's", b"salt of carol", 8192)
                for mechanism in ScramMechanism
            }
        )
        self.now = NOW
        self.without_extension = True
        self.max_reauth_ms: dict[str, int] = {}
        self._salts = Salts(b"secret")
        board = bytearray(board_bytes(2))
        self.other_worker = Board(board, 1)
        self.news: list[str] = []
        self.cut_off = False
        self._revocations = Revocations(Board(board, 0), self._hear, lambda _: None, lambda *_: None)
        self._credentials = TokenCredentials(self._salts, executor)
        self._executor = executor

    async def _hear(self, token_id: str | None) -> None:
        del token_id
        if self.cut_off:
            raise StoreUnavailable("cut off")
        for token_id in self.news:
            self.tokens.cached.pop(token_id, None)
        self.news.clear()

    def login_tokens(self) -> LoginTokens:
        return LoginTokens(_as_manager(self.tokens), self._revocations, lambda: self.now)

    def login(self) -> Login:
        tokens = self.login_tokens()
        scram = ScramAccounts(
            self.users, tokens, self._credentials, self._salts, without_extension=self.without_extension
        )
        return Login(self._mechanisms(), Accounts(tokens, scram), lambda: self.now)

    def _mechanisms(self) -> Mapping[str, OpenMechanism]:
        settings = {
            PLAIN: {"alice": "alice's"},
            OAUTHBEARER: OAuthBearerSettings(jwks_url="", allow_unsigned=True),
        }
        listener = Listener(
            bind=Endpoint("SASL", "", 1),
            advertised=Endpoint("SASL", "", 1),
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            mechanisms={
                name: MechanismSettings(settings.get(name), self.max_reauth_ms.get(name, 0))
                for name in MECHANISMS
                if name != GSSAPI
            },
        )
        return open_mechanisms(listener, MECHANISMS, Resources(self._executor, lambda: self.now, lambda: "servernonce"))


def _as_manager(tokens: KnownTokens) -> TokenManager:
    return tokens  # type: ignore[return-value]


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(1) as executor:
        yield World(executor)


async def evaluated(login: Login, message: bytes) -> LoginOutcome:
    outcome = login.evaluate(message)
    return await outcome if asyncio.iscoroutine(outcome) else outcome


async def scram(
    login: Login, mechanism: ScramMechanism, user: str, password: str, *, extension: bool = False
) -> LoginOutcome:
    login.begin(mechanism)
    client = ScramClient(SCRAM[mechanism], user, password, "clientnonce", token=extension)
    first = await evaluated(login, client.first())
    assert isinstance(first, Challenge), first
    final = await evaluated(login, client.challenge(first.message))
    if isinstance(final, LoggedIn):
        client.verify(final.message or b"")
    return final


BOTH = [ScramMechanism.SHA_256, ScramMechanism.SHA_512]


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("extension", [True, False])
async def test_a_token_logs_in_as_its_owner_with_and_without_the_extension(
    world: World, mechanism: ScramMechanism, extension: bool
) -> None:
    login = world.login()
    outcome = await scram(login, mechanism, TOKEN_ID, PASSWORD, extension=extension)
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.principal == Principal("Group", "ops")
    assert outcome.identity.token_id == TOKEN_ID
    assert outcome.session_lifetime_ms == HOUR
    assert login.identity == outcome.identity


async def test_a_token_that_only_the_store_knows_logs_in(world: World) -> None:
    world.tokens.stored, world.tokens.cached = world.tokens.cached, {}
    outcome = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    assert isinstance(outcome, LoggedIn)


@pytest.mark.parametrize("mechanism", BOTH)
async def test_a_user_of_zookeeper_logs_in_by_name(world: World, mechanism: ScramMechanism) -> None:
    outcome = await scram(world.login(), mechanism, "carol", "carol's")
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.principal == Principal.user("carol")
    assert outcome.identity.token_id is None
    assert outcome.session_lifetime_ms is None


async def test_a_user_is_no_token_even_if_the_client_says_so(world: World) -> None:
    outcome = await scram(world.login(), ScramMechanism.SHA_256, "carol", "carol's", extension=True)
    assert isinstance(outcome, LoginRefused)


async def test_without_the_setting_a_token_needs_the_extension(world: World) -> None:
    world.without_extension = False
    assert isinstance(await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD), LoginRefused)
    with_extension = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    assert isinstance(with_extension, LoggedIn)


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("carol", "client-final: the proof is wrong"),
        (TOKEN_ID, "client-final: the proof is wrong"),
        ("nobody", "there is no such user, and no live token with that id"),
        ("AAAAAAAAAAAAAAAAAAAAAA", "there is no such user, and no live token with that id"),
    ],
)
async def test_the_log_is_told_what_the_client_is_not(world: World, name: str, detail: str) -> None:
    outcome = await scram(world.login(), ScramMechanism.SHA_256, name, "wrong")
    assert isinstance(outcome, LoginRefused)
    assert (outcome.detail, outcome.name, outcome.mechanism) == (detail, name, ScramMechanism.SHA_256)


async def test_a_client_that_says_it_is_no_token_is_none(world: World) -> None:
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    first = await evaluated(login, f"n,,n={TOKEN_ID},r=clientnonce,tokenauth=false".encode())
    assert isinstance(first, Challenge)
    assert login.identity is None
    client = ScramClient(ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, "clientnonce")
    client.first()
    assert isinstance(await evaluated(login, client.challenge(first.message)), LoginRefused)


@pytest.mark.parametrize(
    ("user", "password"),
    [(TOKEN_ID, "wrong"), ("carol", "wrong"), ("nobody", "wrong"), ("AAAAAAAAAAAAAAAAAAAAAA", "wrong")],
)
@pytest.mark.parametrize("extension", [True, False])
async def test_wrong_passwords_and_unknown_names_fail_alike_at_the_last_step(
    world: World, user: str, password: str, extension: bool
) -> None:
    outcome = await scram(world.login(), ScramMechanism.SHA_512, user, password, extension=extension)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == GENERIC + "SCRAM-SHA-512"


async def test_the_salt_of_a_name_that_nobody_has_stays_the_same(world: World) -> None:
    challenges = set()
    for _ in range(3):
        login = world.login()
        login.begin(ScramMechanism.SHA_256)
        first = ScramClient(ScramMechanism.SHA_256, "nobody", "x", "clientnonce").first()
        outcome = await evaluated(login, first)
        assert isinstance(outcome, Challenge)
        challenges.add(outcome.message)
    assert len(challenges) == 1


def server_first(world: World, name: str) -> dict[str, str]:
    """Give the attributes of the first challenge, which must come without waiting."""
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    outcome = login.evaluate(ScramClient(ScramMechanism.SHA_256, name, "x", "clientnonce").first())
    assert isinstance(outcome, Challenge)
    return {part[0]: part[2:] for part in outcome.message.decode().split(",")}


def test_a_name_that_nobody_has_is_challenged_like_a_user_of_kafkas_tools(world: World) -> None:
    known, unknown = server_first(world, "carol"), server_first(world, "nobody")
    assert unknown["i"] == known["i"] == "8192"
    salt = base64.b64decode(unknown["s"]).decode("ascii")
    assert re.fullmatch(r"[0-9a-z]{22,26}", salt)
    assert unknown.keys() == known.keys()


async def test_an_id_that_no_token_has_is_challenged_like_a_token(world: World) -> None:
    await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD)
    live = server_first(world, TOKEN_ID)
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    other = "AAAAAAAAAAAAAAAAAAAAAA"
    outcome = await evaluated(login, ScramClient(ScramMechanism.SHA_256, other, "x", "clientnonce").first())
    assert isinstance(outcome, Challenge)
    attributes = {part[0]: part[2:] for part in outcome.message.decode().split(",")}
    assert attributes["i"] == live["i"] == "4096"
    assert abs(len(attributes["s"]) - len(live["s"])) <= 4


async def test_an_expired_token_is_refused_like_one_that_nobody_has(world: World) -> None:
    world.tokens.cached[TOKEN_ID] = token(expiry_timestamp_ms=NOW - 1)
    outcome = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == GENERIC + "SCRAM-SHA-256"


@pytest.mark.parametrize("end", ["deleted", "expired"])
async def test_a_token_that_ends_during_the_login_does_not_complete_it(world: World, end: str) -> None:
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    client = ScramClient(ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, "clientnonce", token=True)
    first = await evaluated(login, client.first())
    assert isinstance(first, Challenge)
    if end == "deleted":
        del world.tokens.cached[TOKEN_ID]
    else:
        world.now += 2 * HOUR
    assert isinstance(await evaluated(login, client.challenge(first.message)), LoginRefused)


async def test_a_revocation_on_another_worker_counts_before_its_news_is_here(world: World) -> None:
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    client = ScramClient(ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, "clientnonce", token=True)
    first = await evaluated(login, client.first())
    assert isinstance(first, Challenge)
    world.news.append(TOKEN_ID)
    world.other_worker.post(TOKEN_ID)
    assert isinstance(await evaluated(login, client.challenge(first.message)), LoginRefused)


async def test_while_a_revocation_cannot_be_heard_the_token_does_not_log_in(world: World) -> None:
    world.other_worker.post(TOKEN_ID)
    world.cut_off = True
    for _ in range(2):
        outcome = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD)
        assert isinstance(outcome, LoginRefused)
        assert outcome.message == GENERIC + "SCRAM-SHA-256"
    world.cut_off = False
    assert isinstance(await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD), LoggedIn)


async def test_while_a_revocation_cannot_be_heard_other_tokens_log_in(world: World) -> None:
    world.other_worker.post("AAAAAAAAAAAAAAAAAAAAAA")
    world.cut_off = True
    assert isinstance(await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD), LoggedIn)


async def test_a_login_after_all_news_were_heard_asks_for_no_more(world: World) -> None:
    world.other_worker.post(TOKEN_ID)
    assert isinstance(await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD), LoggedIn)
    world.news.append(TOKEN_ID)
    assert isinstance(await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD), LoggedIn)


async def test_a_renewal_during_the_login_counts_for_the_session(world: World) -> None:
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    client = ScramClient(ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, "clientnonce", token=True)
    first = await evaluated(login, client.first())
    assert isinstance(first, Challenge)
    world.tokens.cached[TOKEN_ID] = token(expiry_timestamp_ms=NOW + 3 * HOUR)
    outcome = await evaluated(login, client.challenge(first.message))
    assert isinstance(outcome, LoggedIn)
    assert outcome.session_lifetime_ms == 3 * HOUR


async def test_a_node_that_was_cut_off_too_long_refuses_tokens_but_not_users(world: World) -> None:
    world.tokens.stale = True
    by_token = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    assert isinstance(by_token, LoginRefused)
    assert isinstance(await scram(world.login(), ScramMechanism.SHA_256, "carol", "carol's"), LoggedIn)


async def plain(login: Login, user: str, password: str, authzid: str = "") -> LoginOutcome:
    login.begin(PLAIN)
    return await evaluated(login, plain_message(user, password, authzid))


async def test_plain_takes_the_users_of_the_listener(world: World) -> None:
    outcome = await plain(world.login(), "alice", "alice's")
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.principal == Principal.user("alice")


@pytest.mark.parametrize(("user", "detail"), [("alice", "the password is wrong"), ("nobody", "there is no such user")])
async def test_plain_tells_the_client_the_same_of_both_and_the_log_which(world: World, user: str, detail: str) -> None:
    outcome = await plain(world.login(), user, "wrong")
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == "Authentication failed: Invalid username or password"
    assert outcome.detail == detail


async def test_a_second_login_may_use_another_token_of_the_same_owner(world: World) -> None:
    other = "AAAAAAAAAAAAAAAAAAAAAA"
    world.tokens.cached[other] = token(token_id=other)
    login = world.login()
    await scram(login, ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    outcome = await scram(login, ScramMechanism.SHA_256, other, PASSWORD, extension=True)
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.token_id == other


async def test_a_second_login_may_not_change_the_principal(world: World) -> None:
    other = "AAAAAAAAAAAAAAAAAAAAAA"
    world.tokens.cached[TOKEN_ID] = token(owner=Principal.user("alice"))
    world.tokens.cached[other] = token(token_id=other, owner=Principal.user("bob"))
    login = world.login()
    await scram(login, ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    outcome = await scram(login, ScramMechanism.SHA_256, other, PASSWORD, extension=True)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == "Cannot change principals during re-authentication from User.alice: User.bob"


async def test_a_failed_second_login_is_called_re_authentication(world: World) -> None:
    login = world.login()
    await scram(login, ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    outcome = await scram(login, ScramMechanism.SHA_256, TOKEN_ID, "wrong", extension=True)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == GENERIC.replace("authentication due", "re-authentication due") + "SCRAM-SHA-256"


async def test_a_token_is_derived_once_for_all_who_log_in_at_the_same_time() -> None:
    derivations = []

    def derive(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
        derivations.append(password)
        return derive_credential(mechanism, password, salt, iterations)

    with ThreadPoolExecutor(4) as executor:
        credentials = TokenCredentials(Salts(b"secret"), executor, derive=derive)
        wanted = DelegationToken(token(), HMAC)
        found = await asyncio.gather(*(credentials.derive(ScramMechanism.SHA_256, wanted) for _ in range(10)))
    assert len(set(map(id, found))) == 1
    assert derivations == [PASSWORD]


async def test_credentials_used_longest_ago_make_room() -> None:
    with ThreadPoolExecutor(1) as executor:
        credentials = TokenCredentials(Salts(b"secret"), executor, max_derived=2)
        tokens = [DelegationToken(token(), bytes([n]) * 64) for n in range(3)]
        await credentials.derive(ScramMechanism.SHA_256, tokens[0])
        await credentials.derive(ScramMechanism.SHA_256, tokens[1])
        assert credentials.find(ScramMechanism.SHA_256, tokens[0])
        await credentials.derive(ScramMechanism.SHA_256, tokens[2])
    kept = [credentials.find(ScramMechanism.SHA_256, each) is not None for each in tokens]
    assert kept == [True, False, True]


@pytest.mark.parametrize(
    ("ends_ms", "max_reauth_ms", "lifetime_ms"),
    [
        (None, 0, None),
        (None, -1, None),
        (NOW + HOUR, -1, HOUR),
        (None, 1_000, 1_000),
        (NOW + HOUR, 0, HOUR),
        (NOW + HOUR, 1_000, 1_000),
        (NOW + HOUR, 2 * HOUR, HOUR),
        (NOW - 1, 0, 0),
    ],
)
def test_a_session_lasts_as_long_as_its_token_and_the_setting_allow(
    ends_ms: int | None, max_reauth_ms: int, lifetime_ms: int | None
) -> None:
    assert session_lifetime_ms(ends_ms, max_reauth_ms, NOW) == lifetime_ms


async def test_the_session_of_a_token_ends_with_the_tokens_maximum_too(world: World) -> None:
    world.tokens.cached[TOKEN_ID] = token(max_timestamp_ms=NOW + 5)
    outcome = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, PASSWORD, extension=True)
    assert isinstance(outcome, LoggedIn)
    assert outcome.session_lifetime_ms == 5


async def bearer(login: Login, token_text: str) -> LoginOutcome:
    login.begin(OAUTHBEARER)
    return await evaluated(login, f"n,,\x01auth=Bearer {token_text}\x01\x01".encode())


def unsigned_token(subject: str = "alice", exp: int = NOW // 1000 + 3600) -> str:
    return unsigned({"alg": "none"}, {"sub": subject, "iat": NOW // 1000, "exp": exp})


async def test_a_bearer_token_logs_in_as_its_subject_until_it_ends(world: World) -> None:
    outcome = await bearer(world.login(), unsigned_token())
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.principal == Principal.user("alice")
    assert outcome.identity.token_id is None
    assert outcome.session_lifetime_ms == HOUR


async def test_a_session_by_bearer_token_ends_when_the_setting_says_so(world: World) -> None:
    world.max_reauth_ms = {OAUTHBEARER: 1_000}
    outcome = await bearer(world.login(), unsigned_token())
    assert isinstance(outcome, LoggedIn)
    assert outcome.session_lifetime_ms == 1_000


async def test_a_bearer_token_that_is_refused_is_told_in_two_steps(world: World) -> None:
    login = world.login()
    assert await bearer(login, unsigned_token(exp=1)) == Challenge(b'{"status": "invalid_token"}')
    foregone = login.foregone
    assert foregone is not None
    outcome = await evaluated(login, b"\x01")
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == '{"status": "invalid_token"}'
    assert "expired" in outcome.detail
    assert (foregone.detail, foregone.reason) == (outcome.detail, outcome.reason)
    assert login.foregone is None


async def test_a_refused_bearer_token_is_forgotten_with_the_next_login(world: World) -> None:
    login = world.login()
    await bearer(login, unsigned_token(exp=1))
    assert isinstance(await bearer(login, unsigned_token()), LoggedIn)
    assert login.foregone is None


async def test_a_bearer_token_may_not_change_the_principal(world: World) -> None:
    login = world.login()
    await bearer(login, unsigned_token("alice"))
    outcome = await bearer(login, unsigned_token("bob"))
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert isinstance(await bearer(login, unsigned_token("alice", NOW // 1000 + 7200)), LoggedIn)


async def test_the_end_of_a_bearer_token_is_not_that_of_the_next_login(world: World) -> None:
    login = world.login()
    await bearer(login, unsigned_token("carol"))
    outcome = await scram(login, ScramMechanism.SHA_256, "carol", "carol's")
    assert isinstance(outcome, LoggedIn)
    assert outcome.session_lifetime_ms is None
