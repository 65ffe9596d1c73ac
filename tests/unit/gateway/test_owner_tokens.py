"""Tokens that the gateway gets for its clients: found, made, renewed, replaced, forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    ConnectionFailed,
    ConnectionLost,
    Credentials,
    DelegationToken,
    LoginFailed,
    TokenAuthorizationFailed,
    TokenExpired,
    TokensDisabled,
    UnsupportedByServer,
)
from kafka_dt.gateway.identities import IdentityRefused, NoIdentity
from kafka_dt.gateway.owner_tokens import DENIED_MS, FORGOTTEN_AFTER_MS, MARKS, SWEEP_MS, TOLD_MS, OwnerTokens
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol.sasl import ScramMechanism

ALICE = Principal.user("alice")
BOB = Principal.user("bob")
GATEWAY = "User:gateway"
NOW = 1_000_000_000
MINUTE = 60_000
PERIOD = 75 * MINUTE
LIFETIME = 7 * PERIOD


@dataclass
class Cluster:
    """Makes tokens as a broker does, and writes down what it is asked."""

    now_ms: int = NOW
    tokens: dict[str, DelegationToken] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    fail: dict[str, Exception] = field(default_factory=dict)
    """What describe, create or renew raise."""
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    async def _ask(self, what: str) -> None:
        self.asked.append(what)
        await self.answers.wait()
        if what in self.fail:
            raise self.fail[what]

    async def describe(self, owners: Sequence[str]) -> list[DelegationToken]:
        await self._ask("describe")
        wanted = set(owners)
        return [token for token in self.tokens.values() if wanted & {token.owner, *token.renewers}]

    async def create(self, owner: str, renewers: Sequence[str]) -> DelegationToken:
        await self._ask("create")
        return self.add(owner, tuple(renewers))

    async def renew(self, hmac: bytes) -> int:
        await self._ask("renew")
        (token,) = [token for token in self.tokens.values() if token.hmac == hmac]
        expiry = min(self.now_ms + PERIOD, token.max_timestamp_ms)
        self.tokens[token.token_id] = replace(token, expiry_timestamp_ms=expiry)
        return expiry

    async def close(self) -> None:
        self.asked.append("close")

    def add(self, owner: str, renewers: tuple[str, ...] = (GATEWAY,), age_ms: int = 0) -> DelegationToken:
        token = DelegationToken(
            token_id=f"token-{len(self.tokens)}",
            owner=owner,
            requester=GATEWAY,
            renewers=renewers,
            issue_timestamp_ms=self.now_ms - age_ms,
            expiry_timestamp_ms=self.now_ms + PERIOD,
            max_timestamp_ms=self.now_ms - age_ms + LIFETIME,
            hmac=f"hmac-{len(self.tokens)}".encode(),
        )
        self.tokens[token.token_id] = token
        return token


def identities(cluster: Cluster) -> OwnerTokens:
    return OwnerTokens(cluster, GATEWAY, ScramMechanism.SHA_512, now_ms=lambda: cluster.now_ms)


async def used(tokens: OwnerTokens, principal: Principal = ALICE) -> str:
    """The id of the token that a principal logs in with, once what happens behind its back is done."""
    token_id = (await tokens.login(principal)).credentials.username
    await asyncio.gather(*tokens._under_way.values(), return_exceptions=True)
    return token_id


async def test_the_first_client_of_a_principal_has_a_token_made_for_it() -> None:
    cluster = Cluster()
    login = await identities(cluster).login(ALICE)
    (token,) = cluster.tokens.values()
    assert (token.owner, token.renewers) == ("User:alice", (GATEWAY,))
    assert login.credentials == Credentials("SCRAM-SHA-512", token.token_id, token.hmac_base64, token_auth=True)
    assert login.known_by_ms == NOW + 5_000
    assert cluster.asked == ["describe", "create"]


async def test_no_secret_shows() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    login = await tokens.login(ALICE)
    (token,) = cluster.tokens.values()
    assert token.hmac_base64 not in repr(login)
    assert repr(token.hmac) not in repr(tokens._held)


async def test_later_clients_of_a_principal_share_its_token_and_no_other_principal_does() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    assert await used(tokens) == await used(tokens) == "token-0"
    assert await used(tokens, BOB) == "token-1"
    assert cluster.tokens["token-1"].owner == "User:bob"
    assert cluster.asked == ["describe", "create"] * 2


@pytest.mark.parametrize("owner", ["Group:alice", "user:alice", "X:alice"])
async def test_an_owner_of_another_type_is_not_its_namesake_upstream(owner: str) -> None:
    cluster = Cluster()
    with pytest.raises(NoIdentity, match="brokers take the owner of a token for a User"):
        await identities(cluster).login(Principal(*owner.split(":")))
    assert cluster.asked == []


async def test_clients_that_come_at_once_have_one_token_made() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    cluster.answers.clear()
    waiting = [asyncio.create_task(used(tokens)) for _ in range(100)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    cluster.answers.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert set(results[1:]) == {"token-0"}
    assert cluster.asked == ["describe", "create"]


async def test_a_token_that_was_made_before_is_taken() -> None:
    cluster = Cluster()
    cluster.add("User:alice", age_ms=PERIOD)
    younger = cluster.add("User:alice", age_ms=MINUTE)
    login = await identities(cluster).login(ALICE)
    assert login.credentials.username == younger.token_id
    assert login.known_by_ms < NOW
    assert cluster.asked == ["describe"]


async def test_where_the_gateway_may_renew_its_clients_tokens_it_takes_none_of_them_for_its_own() -> None:
    cluster = Cluster()
    cluster.add("User:alice")
    cluster.add(GATEWAY)
    tokens = OwnerTokens(cluster, GATEWAY, ScramMechanism.SHA_512, marks=MARKS, now_ms=lambda: cluster.now_ms)
    assert await used(tokens) == "token-2"
    assert cluster.tokens["token-2"].renewers == (GATEWAY, GATEWAY)
    assert await used(tokens, Principal.parse(GATEWAY)) == "token-3"
    after_a_restart = OwnerTokens(cluster, GATEWAY, ScramMechanism.SHA_512, marks=MARKS, now_ms=lambda: cluster.now_ms)
    assert await used(after_a_restart) == "token-2"


async def test_a_token_that_another_process_has_just_made_may_not_be_known_yet() -> None:
    cluster = Cluster()
    cluster.add("User:alice")
    assert (await identities(cluster).login(ALICE)).known_by_ms == NOW + 5_000


@pytest.mark.parametrize(
    ("owner", "renewers", "age_ms"),
    [
        ("User:alice", (), 0),
        ("User:bob", (GATEWAY, "User:alice"), 0),
        ("User:alice", (GATEWAY,), LIFETIME * 3 // 4),
    ],
    ids=["the gateway is no renewer of it", "it is another owner's", "it is too old"],
)
async def test_tokens_that_do_not_serve_are_not_taken(owner: str, renewers: tuple[str, ...], age_ms: int) -> None:
    cluster = Cluster()
    cluster.add(owner, renewers, age_ms)
    assert await used(identities(cluster)) == "token-1"
    assert cluster.tokens["token-1"].owner == "User:alice"


async def test_the_gateways_own_principal_can_be_a_client() -> None:
    cluster = Cluster()
    cluster.add(GATEWAY, ())
    assert await used(identities(cluster), Principal.user("gateway")) == "token-0"


async def test_an_expired_token_that_is_still_listed_is_not_taken() -> None:
    cluster = Cluster()
    token = cluster.add("User:alice")
    cluster.tokens[token.token_id] = replace(token, expiry_timestamp_ms=NOW)
    assert await used(identities(cluster)) == "token-1"


async def test_a_token_is_renewed_when_three_quarters_of_its_time_are_over() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD * 3 // 4 - 1
    await used(tokens)
    assert cluster.asked == ["describe", "create"]
    cluster.now_ms += 1
    assert await used(tokens) == "token-0"
    assert cluster.asked == ["describe", "create", "renew"]
    cluster.now_ms += PERIOD * 3 // 4 - 1
    await used(tokens)
    assert cluster.asked.count("renew") == 1
    cluster.now_ms += 1
    assert await used(tokens) == "token-0"
    assert cluster.asked.count("renew") == 2


async def test_nobody_waits_for_a_renewal() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD * 3 // 4
    cluster.answers.clear()
    assert (await tokens.login(ALICE)).credentials.username == "token-0"
    cluster.answers.set()
    await used(tokens)
    assert cluster.asked == ["describe", "create", "renew"]


async def test_a_token_in_its_last_moments_is_renewed_before_it_is_given_out() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD - 5_000
    assert (await tokens.login(ALICE)).credentials.username == "token-0"
    assert cluster.asked[-1] == "renew"


async def test_after_its_end_another_token_is_made() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD
    assert await used(tokens) == "token-1"


async def test_a_token_near_its_longest_lifetime_is_replaced_while_it_serves() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    for _ in range(8):
        assert await used(tokens) == "token-0"
        cluster.now_ms += PERIOD * 3 // 4
    assert await used(tokens) == "token-1"
    assert cluster.asked.count("create") == 2


async def test_a_renewal_that_fails_leaves_the_token_and_is_tried_again_later() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD * 3 // 4
    cluster.fail["renew"] = ConnectionLost("there", "it has gone")
    assert await used(tokens) == await used(tokens) == "token-0"
    assert cluster.asked.count("renew") == 1
    cluster.fail.clear()
    cluster.now_ms += 10_000
    assert await used(tokens) == "token-0"
    assert cluster.asked.count("renew") == 2
    assert cluster.tokens["token-0"].expiry_timestamp_ms == cluster.now_ms + PERIOD


async def test_a_token_that_was_found_serves_although_it_cannot_be_renewed_now() -> None:
    cluster = Cluster(fail={"renew": ConnectionLost("there", "it has gone")})
    cluster.add("User:alice", age_ms=5 * PERIOD)
    assert await used(identities(cluster)) == "token-0"
    assert cluster.asked == ["describe", "renew"]


async def test_a_token_that_the_cluster_will_not_renew_is_replaced() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD * 3 // 4
    cluster.fail["renew"] = TokenExpired(ErrorCode.delegation_token_expired, "renew")
    await used(tokens)
    assert await used(tokens) == "token-1"


async def test_a_refused_token_is_not_given_out_again_although_it_is_listed() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    first = await tokens.login(ALICE)
    await tokens.refused(ALICE, first)
    second = await tokens.login(ALICE)
    assert second.credentials.username == "token-1"
    await tokens.refused(ALICE, first)
    assert await tokens.login(ALICE) == second


async def test_a_token_that_is_refused_while_it_is_renewed_is_not_given_out_again() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    first = await tokens.login(ALICE)
    cluster.now_ms += PERIOD * 3 // 4
    cluster.answers.clear()
    await tokens.login(ALICE)
    await asyncio.sleep(0)
    assert cluster.asked[-1] == "renew"
    await tokens.refused(ALICE, first)
    waiting = asyncio.create_task(tokens.login(ALICE))
    await asyncio.sleep(0)
    cluster.answers.set()
    assert (await waiting).credentials.username == "token-1"
    assert await used(tokens) == "token-1"
    assert cluster.asked.count("create") == 2


async def test_refusals_that_go_on_do_not_pile_up_tokens() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    for _ in range(10):
        await tokens.refused(ALICE, await tokens.login(ALICE))
    assert len(cluster.tokens) == 2
    cluster.now_ms += 60_000
    await tokens.refused(ALICE, await tokens.login(ALICE))
    await tokens.login(ALICE)
    assert len(cluster.tokens) == 2, "the first one may serve by now"


@pytest.mark.parametrize(
    "refusal",
    [
        TokenAuthorizationFailed(ErrorCode.delegation_token_authorization_failed, "create"),
        TokensDisabled(ErrorCode.delegation_token_auth_disabled, "create"),
        UnsupportedByServer("there", "tokens for another owner"),
        LoginFailed("there", "PLAIN", "wrong password"),
    ],
)
async def test_whom_the_cluster_makes_no_token_for_is_nobody_there(refusal: Exception) -> None:
    cluster = Cluster(fail={"create": refusal})
    tokens = identities(cluster)
    with pytest.raises(IdentityRefused, match=r"User:alice has no identity upstream: .") as caught:
        await tokens.login(ALICE)
    assert caught.value.__cause__ is refusal
    cluster.fail.clear()
    cluster.now_ms += DENIED_MS
    assert await used(tokens) == "token-0"


async def test_the_cluster_is_not_asked_about_one_that_it_makes_no_token_for_again_and_again() -> None:
    cluster = Cluster(fail={"create": TokensDisabled(ErrorCode.delegation_token_auth_disabled, "create")})
    tokens = identities(cluster)
    reasons = set()
    for _ in range(10):
        with pytest.raises(NoIdentity) as caught:
            await tokens.login(ALICE)
        reasons.add(str(caught.value))
    assert len(reasons) == 1
    assert cluster.asked == ["describe", "create"]
    with pytest.raises(NoIdentity):
        await tokens.login(BOB)
    assert cluster.asked == ["describe", "create"] * 2
    cluster.now_ms += max(SWEEP_MS, TOLD_MS)
    with pytest.raises(NoIdentity):
        await tokens.login(BOB)
    assert set(tokens._denied) == {"User:bob"}


async def test_a_clock_that_is_set_back_does_not_keep_a_refusal_alive(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(fail={"create": TokensDisabled(ErrorCode.delegation_token_auth_disabled, "create")})
    tokens = identities(cluster)
    for _ in range(2):
        with pytest.raises(NoIdentity):
            await tokens.login(ALICE)
        cluster.now_ms -= 3_600_000
    assert cluster.asked == ["describe", "create"] * 2
    assert len(warnings(caplog)) == 2


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


async def test_a_missing_right_to_create_tokens_is_told_once_with_the_user_who_lacks_it_and_the_acl(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusal = TokenAuthorizationFailed(ErrorCode.delegation_token_authorization_failed, "create")
    cluster = Cluster(fail={"create": refusal})
    cluster.answers.clear()
    tokens = identities(cluster)
    clients = [asyncio.create_task(tokens.login(ALICE)) for _ in range(10)]
    await asyncio.sleep(0)
    cluster.answers.set()
    refused = await asyncio.gather(*clients, return_exceptions=True)
    assert {type(each) for each in refused} == {IdentityRefused}
    (line,) = warnings(caplog)
    assert line.startswith("The gateway's user User:gateway got no upstream token for User:alice")
    assert "User:gateway needs an ACL of the upstream cluster that allows CreateTokens on User:alice" in line


async def test_a_client_that_comes_back_without_a_pause_is_warned_of_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster(fail={"create": TokensDisabled(ErrorCode.delegation_token_auth_disabled, "create")})
    tokens = identities(cluster)
    for _ in range(2 * TOLD_MS // DENIED_MS):
        with pytest.raises(IdentityRefused):
            await tokens.login(ALICE)
        cluster.now_ms += DENIED_MS
    first, second = warnings(caplog)
    assert first == second
    assert "delegation tokens are switched off there" in first
    assert "CreateTokens" not in first


async def test_a_name_that_does_not_print_does_not_break_the_line_about_it(caplog: pytest.LogCaptureFixture) -> None:
    refusal = TokenAuthorizationFailed(ErrorCode.delegation_token_authorization_failed, "create")
    with pytest.raises(IdentityRefused):
        await identities(Cluster(fail={"create": refusal})).login(Principal.user("a\nlice"))
    (line,) = warnings(caplog)
    assert "\n" not in line


async def test_a_client_that_is_not_logged_in_or_no_user_is_no_refusal_of_the_cluster(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tokens = identities(Cluster())
    for principal in (ANONYMOUS, Principal("Group", "alice")):
        with pytest.raises(NoIdentity) as caught:
            await tokens.login(principal)
        assert not isinstance(caught.value, IdentityRefused)
    assert warnings(caplog) == []


async def test_a_refused_login_of_the_gateways_own_ends_no_token_that_there_is() -> None:
    refusal = LoginFailed("there", "PLAIN", "wrong password")
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += PERIOD * 3 // 4
    cluster.fail = {"describe": refusal, "renew": refusal}
    with pytest.raises(NoIdentity, match="wrong password"):
        await tokens.login(BOB)
    assert await used(tokens) == "token-0"
    cluster.fail.clear()
    cluster.now_ms += DENIED_MS
    assert await used(tokens, BOB) == "token-1"


async def test_whoever_is_not_logged_in_has_no_token() -> None:
    cluster = Cluster()
    with pytest.raises(NoIdentity):
        await identities(cluster).login(ANONYMOUS)
    assert cluster.asked == []


async def test_a_cluster_that_is_not_there_is_told_and_asked_again() -> None:
    cluster = Cluster(fail={"describe": ConnectionLost("there", "it has gone")})
    tokens = identities(cluster)
    with pytest.raises(ConnectionFailed):
        await tokens.login(ALICE)
    cluster.fail.clear()
    assert await used(tokens) == "token-0"


async def test_a_token_that_nobody_uses_is_forgotten_and_found_again() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    cluster.now_ms += FORGOTTEN_AFTER_MS - SWEEP_MS
    await used(tokens, BOB)
    assert set(tokens._held) == {"User:alice", "User:bob"}
    cluster.now_ms += SWEEP_MS
    await used(tokens, BOB)
    assert set(tokens._held) == {"User:bob"}
    assert await used(tokens) == "token-0"


async def test_closing_ends_what_is_under_way() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    cluster.answers.clear()
    waiting = asyncio.create_task(tokens.login(ALICE))
    await asyncio.sleep(0)
    await tokens.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cluster.asked[-1] == "close"


async def test_after_the_end_nothing_is_asked_any_more() -> None:
    cluster = Cluster()
    tokens = identities(cluster)
    await used(tokens)
    await tokens.close()
    for principal in (ALICE, BOB):
        with pytest.raises(ConnectionFailed):
            await tokens.login(principal)
    assert cluster.asked == ["describe", "create", "close"]


async def test_a_name_that_does_not_print_does_not_break_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await identities(Cluster()).login(Principal.user("a\nlice"))
    assert [message.splitlines() for message in caplog.messages] == [
        ["Made the upstream token token-0 for User:a?lice"]
    ]
