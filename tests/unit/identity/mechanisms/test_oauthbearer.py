"""Judging bearer tokens: which are good, and every way in which one is not."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from kio.schema.errors import ErrorCode

from kafka_dt.config import MechanismSettings, SecurityProtocol
from kafka_dt.identity.login.login import Login
from kafka_dt.identity.mechanisms import Accounts, OpenMechanism
from kafka_dt.identity.mechanisms.oauthbearer import MAX_TIMESTAMP_MS, BearerExchange, BearerTokens, Judgement
from kafka_dt.identity.oauth.jwks import Jwks
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import OAUTHBEARER, BearerAccepted, BearerRejected
from tests.support.identity.issuer import AUDIENCE, NAME, Issuer, segment, signing_key, unsigned
from tests.support.server.fake_transport import FAILED_LOGIN_DELAY_MS, Shell, listener

NOW_S = 1_700_000_000
EXPIRY_MS = (NOW_S + 3600) * 1000
SETTINGS = OAuthBearerSettings(jwks_url="file:/jwks.json", expected_audience=(AUDIENCE, "x"), expected_issuer=NAME)
ISSUER = Issuer()
GOOD = {"sub": "alice", "iss": NAME, "aud": AUDIENCE, "iat": NOW_S, "exp": NOW_S + 3600}


@pytest.fixture(scope="module")
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


@pytest.fixture
def unsigned_only() -> BearerTokens:
    """Judge unsigned tokens: the rules for claims do not depend on the signature."""
    return BearerTokens(replace(SETTINGS, jwks_url="", allow_unsigned=True), None, lambda: NOW_S * 1000)


async def bearer_tokens(executor: ThreadPoolExecutor, jwks: bytes | None = None, **changes: Any) -> BearerTokens:
    changed = replace(SETTINGS, **changes)
    keys = Jwks(changed, executor, lambda: NOW_S * 1000, read=lambda: jwks or ISSUER.jwks())
    made = BearerTokens(changed, keys, lambda: NOW_S * 1000)
    await made.start()
    await made.close()
    return made


async def judged(tokens: BearerTokens, token: str) -> Judgement:
    judgement = tokens.judge(token)
    return await judgement if asyncio.iscoroutine(judgement) else judgement


def reason(judgement: Judgement) -> str:
    assert isinstance(judgement.verdict, BearerRejected), judgement
    assert judgement.expiry_timestamp_ms is None
    return judgement.verdict.detail


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": ["other", AUDIENCE]},
        {"exp": NOW_S + 3600.0},
        {"scope": "read write"},
        {"scope": ["read", "write"]},
        {"nbf": NOW_S + 29},
        {"iat": NOW_S + 30},
    ],
)
async def test_a_good_token_says_who_and_until_when(executor: ThreadPoolExecutor, claims: dict[str, Any]) -> None:
    tokens = await bearer_tokens(executor)
    token = ISSUER.token(now_s=NOW_S, **claims)
    assert tokens.judge(token) == Judgement(BearerAccepted("alice"), EXPIRY_MS)


@pytest.mark.parametrize(
    ("kind", "size", "algorithm"),
    [
        ("RSA", 2048, "PS256"),
        ("RSA", 2048, "RS512"),
        ("EC", "P-256", "ES256"),
        ("EC", "P-384", "ES384"),
        ("EC", "P-521", "ES512"),
        ("OKP", "Ed25519", "EdDSA"),
        ("OKP", "Ed25519", "Ed25519"),
    ],
)
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
async def test_all_algorithms_with_a_public_key_are_taken(
    executor: ThreadPoolExecutor, kind: str, size: str | int, algorithm: str
) -> None:
    issuer = Issuer(signing_key("key-2", kind, size), algorithm)
    tokens = await bearer_tokens(executor, issuer.jwks(ISSUER.key))
    assert tokens.judge(issuer.token(now_s=NOW_S)) == Judgement(BearerAccepted("alice"), EXPIRY_MS)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW_S - 30}, "expired"),
        ({"exp": NOW_S - 30.5}, "expired"),
        ({"exp": None}, "missing_claim"),
        ({"exp": "tomorrow"}, "'exp'"),
        ({"exp": True}, "'exp'"),
        ({"iat": None}, "missing_claim"),
        ({"iat": NOW_S + 31}, "future"),
        ({"nbf": NOW_S + 31}, "not yet valid"),
        ({"iss": None}, "missing_claim"),
        ({"iss": NAME + "/"}, "'iss'"),
        ({"iss": [NAME]}, "'iss'"),
        ({"aud": None}, "missing_claim"),
        ({"aud": "other"}, "'aud'"),
        ({"aud": []}, "'aud'"),
        ({"sub": None}, "name is missing"),
        ({"sub": " "}, "name is missing"),
        ({"sub": 7}, "'sub'"),
        ({"scope": ["read", "read"]}, "scope"),
        ({"scope": ["read", ""]}, "scope"),
        ({"scope": [1]}, "scope"),
    ],
)
async def test_a_claim_that_does_not_hold_is_refused(
    executor: ThreadPoolExecutor, claims: dict[str, Any], why: str
) -> None:
    tokens = await bearer_tokens(executor)
    assert why in reason(await judged(tokens, ISSUER.token(now_s=NOW_S, **claims)))


async def test_the_name_and_the_scope_may_be_in_claims_of_other_names(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor, sub_claim_name="email", scope_claim_name="scp")
    token = ISSUER.token(now_s=NOW_S, email=" alice@example.com ", scp=["a"], scope=["b", "b"])
    assert tokens.judge(token) == Judgement(BearerAccepted("alice@example.com"), EXPIRY_MS)
    assert "name is missing" in reason(await judged(tokens, ISSUER.token(now_s=NOW_S)))


async def test_without_an_expected_audience_a_token_for_somebody_else_is_refused(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor, expected_audience=(), expected_issuer="")
    assert "no expected audience" in reason(await judged(tokens, ISSUER.token(now_s=NOW_S)))
    anybodys = ISSUER.token(now_s=NOW_S, aud=None, iss="any-issuer")
    assert isinstance((await judged(tokens, anybodys)).verdict, BearerAccepted)


LAST_INSTANT_S = MAX_TIMESTAMP_MS // 1000
NO_INSTANTS = [
    *(LAST_INSTANT_S + 1, 2**63, 2**80, 10**4000, 1e300, 1e308, float("inf"), float("nan")),
    *(-1, -1e308, float("-inf"), True, False, "1e308", [NOW_S], {"seconds": NOW_S}),
]


async def test_a_token_may_end_in_the_last_instant_that_kafka_can_tell(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor)
    judgement = await judged(tokens, ISSUER.token(now_s=NOW_S, exp=LAST_INSTANT_S))
    assert judgement == Judgement(BearerAccepted("alice"), LAST_INSTANT_S * 1000)


@pytest.mark.parametrize("claim", ["exp", "iat", "nbf"])
@pytest.mark.parametrize("value", NO_INSTANTS, ids=lambda value: str(value)[:20])
def test_a_time_that_is_no_instant_is_refused(unsigned_only: BearerTokens, claim: str, value: object) -> None:
    judgement = unsigned_only.judge(unsigned({"alg": "none"}, GOOD | {claim: value}))
    assert isinstance(judgement, Judgement)
    assert reason(judgement)


@pytest.mark.parametrize(
    "name", ["a\ud800b", "\udfff", "a\0b", "a\nb", "a\x7fb", "a\x85b", "a\u2028b", "a" * 1025, "", "\n"]
)
def test_a_name_that_could_not_be_used_later_is_refused(unsigned_only: BearerTokens, name: str) -> None:
    judgement = unsigned_only.judge(unsigned({"alg": "none"}, GOOD | {"sub": name}))
    assert isinstance(judgement, Judgement)
    assert "the principal's name" in reason(judgement)


@pytest.mark.parametrize("name", ["José 🦊", "a" * 1024, "CN=alice,O=Example", "a\u200db"])
def test_any_other_name_is_taken(unsigned_only: BearerTokens, name: str) -> None:
    judgement = unsigned_only.judge(unsigned({"alg": "none"}, GOOD | {"sub": name}))
    assert judgement == Judgement(BearerAccepted(name), EXPIRY_MS)


@pytest.mark.parametrize("text", ['{"exp":NaN}', '{"a":' + "[" * 60_000, "9" * 5_000, '{"a":1e400}', '{"sub":"\\ud8'])
def test_a_payload_that_is_no_json_or_too_deep_is_refused(unsigned_only: BearerTokens, text: str) -> None:
    payload = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    judgement = unsigned_only.judge(f"{segment({'alg': 'none'})}.{payload}.")
    assert isinstance(judgement, Judgement)
    assert reason(judgement)


@pytest.mark.parametrize("claims", [{"exp": 1e308}, {"sub": "a\ud800b"}])
async def test_a_refused_token_is_one_line_of_the_log(
    unsigned_only: BearerTokens, claims: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    offered = replace(listener(SecurityProtocol.SASL_PLAINTEXT), mechanisms={OAUTHBEARER: MechanismSettings()})
    opened = {OAUTHBEARER: OpenMechanism(lambda _: BearerExchange(unsigned_only))}
    unused: Any = None
    shell = Shell(listener=offered, new_login=lambda _: Login(opened, Accounts(unused, unused), lambda: NOW_S * 1000))
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="OAUTHBEARER")
    token = unsigned({"alg": "none"}, GOOD | claims)
    for message in (f"n,,\x01auth=Bearer {token}\x01\x01", "\x01"):
        shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message.encode())
    await asyncio.sleep(2 * FAILED_LOGIN_DELAY_MS / 1000)
    _, challenge, answer = shell.answers()
    assert challenge.auth_bytes == b'{"status": "invalid_token"}'
    assert answer.error_code is ErrorCode.sasl_authentication_failed
    (line,) = caplog.messages
    assert "the bearer token is refused" in line


async def test_a_signature_by_somebody_else_is_refused(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor)
    forged = Issuer(signing_key("key-1")).token(now_s=NOW_S)
    assert "signature" in reason(await judged(tokens, forged))


async def test_a_changed_claim_breaks_the_signature(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor)
    header, _, signature = ISSUER.token(now_s=NOW_S).split(".")
    changed = f"{header}.{segment(GOOD | {'sub': 'admin'})}.{signature}"
    assert "signature" in reason(await judged(tokens, changed))


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "None"}, {"alg": "none", "kid": "key-1"}])
async def test_an_unsigned_token_is_refused(executor: ThreadPoolExecutor, header: dict[str, str]) -> None:
    tokens = await bearer_tokens(executor)
    assert "not allowed" in reason(await judged(tokens, unsigned(header, GOOD)))


@pytest.mark.parametrize("header", [["alg"], ["alg", "kid"], "alg", 1, None])
async def test_a_header_that_is_no_object_is_refused(
    executor: ThreadPoolExecutor, unsigned_only: BearerTokens, header: object
) -> None:
    token = unsigned(header, GOOD)
    for tokens in (unsigned_only, await bearer_tokens(executor)):
        assert "is refused" in reason(await judged(tokens, token))


async def test_the_public_key_is_no_secret_to_sign_with(executor: ThreadPoolExecutor) -> None:
    """HS256 with the public key as the secret: the classic confusion of algorithms."""
    tokens = await bearer_tokens(executor)
    for form in (ISSUER.key.as_bytes("PEM"), ISSUER.key.as_bytes("DER"), ISSUER.jwks()):  # type: ignore[union-attr]
        assert "not allowed" in reason(await judged(tokens, signed_with_secret(form, "key-1")))


def signed_with_secret(secret: bytes, kid: str) -> str:
    """A token by HS256; made by hand, for joserfc does not take a public key as a secret."""
    signed = f"{segment({'alg': 'HS256', 'kid': kid})}.{segment(GOOD)}"
    signature = hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


async def test_a_published_secret_signs_nothing(executor: ThreadPoolExecutor) -> None:
    published = json.loads(ISSUER.jwks())
    text = base64.urlsafe_b64encode(b"k" * 32).rstrip(b"=").decode()
    published["keys"].append({"kty": "oct", "k": text, "kid": "secret"})
    tokens = await bearer_tokens(executor, json.dumps(published).encode())
    assert "not allowed" in reason(await judged(tokens, signed_with_secret(b"k" * 32, "secret")))


async def test_a_key_in_the_tokens_own_header_is_not_looked_at(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor)
    mine = signing_key("mine")
    header = {"alg": "RS256", "jwk": mine.as_dict(private=False), "kid": "mine"}
    forged = jwt.encode(header, dict(GOOD), mine, ["RS256"])
    assert "does not publish" in reason(await judged(tokens, forged))


async def test_a_critical_header_that_nobody_knows_is_refused(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor)
    header, claims, signature = ISSUER.token(now_s=NOW_S).split(".")
    critical = segment({"alg": "RS256", "kid": "key-1", "crit": ["new"], "new": 1})
    assert reason(await judged(tokens, f"{critical}.{claims}.{signature}"))
    assert header != critical


async def test_without_a_key_id_the_only_key_that_fits_is_meant(executor: ThreadPoolExecutor) -> None:
    token = jwt.encode({"alg": "RS256"}, dict(GOOD), ISSUER.key, ["RS256"])
    other_kind = signing_key("key-2", "EC", "P-256")
    for_encryption = signing_key("key-3").as_dict(private=False) | {"use": "enc"}
    published = json.loads(ISSUER.jwks(other_kind))
    published["keys"].append(for_encryption)
    tokens = await bearer_tokens(executor, json.dumps(published).encode())
    assert isinstance((await judged(tokens, token)).verdict, BearerAccepted)
    tokens = await bearer_tokens(executor, ISSUER.jwks(signing_key("key-4")))
    assert "names no key" in reason(await judged(tokens, token))


async def test_a_key_that_was_published_meanwhile_is_found(executor: ThreadPoolExecutor) -> None:
    published = [ISSUER.jwks()]
    now = [NOW_S * 1000]
    keys = Jwks(SETTINGS, executor, lambda: now[0], read=lambda: published[0])
    tokens = BearerTokens(SETTINGS, keys, lambda: NOW_S * 1000)
    await tokens.start()
    new = Issuer(signing_key("key-2"))
    published[0] = new.jwks()
    assert "does not publish" in reason(await judged(tokens, new.token(now_s=NOW_S)))
    now[0] += 10_000
    assert isinstance((await judged(tokens, new.token(now_s=NOW_S))).verdict, BearerAccepted)
    assert "does not publish" in reason(await judged(tokens, ISSUER.token(now_s=NOW_S)))
    await tokens.close()


async def test_unsigned_tokens_are_taken_where_a_setting_says_so(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor, allow_unsigned=True)
    good = Judgement(BearerAccepted("alice"), EXPIRY_MS)
    assert await judged(tokens, unsigned({"alg": "none"}, GOOD)) == good
    assert await judged(tokens, ISSUER.token(now_s=NOW_S)) == good
    assert "with a signature" in reason(await judged(tokens, unsigned({"alg": "none"}, GOOD, "AAAA")))
    assert "expired" in reason(await judged(tokens, unsigned({"alg": "none"}, GOOD | {"exp": 1})))
    assert reason(await judged(tokens, unsigned({"alg": "none"}, ["no", "claims"])))


async def test_without_keys_only_unsigned_tokens_are_taken() -> None:
    tokens = BearerTokens(replace(SETTINGS, jwks_url="", allow_unsigned=True), None, lambda: NOW_S * 1000)
    await tokens.start()
    assert isinstance((await judged(tokens, unsigned({"alg": "none"}, GOOD))).verdict, BearerAccepted)
    assert "only unsigned" in reason(await judged(tokens, ISSUER.token(now_s=NOW_S)))
    await tokens.close()


async def test_a_refusal_shows_nothing_of_the_token(executor: ThreadPoolExecutor) -> None:
    tokens = await bearer_tokens(executor)
    token = ISSUER.token("a-name-to-look-for", now_s=NOW_S, exp=1)
    shown = reason(await judged(tokens, token))
    assert all(part not in shown for part in (*token.split("."), "a-name-to-look-for"))
    assert "\n" not in reason(await judged(tokens, unsigned({"alg": "x\ny"}, GOOD)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
HEADERS = JSON | st.fixed_dictionaries(
    {"alg": st.sampled_from(["none", "RS256", "HS256"]) | JSON},
    optional={"kid": JSON, "crit": JSON, "b64": JSON, "typ": JSON},
)
CLAIMS = JSON | st.fixed_dictionaries(
    {}, optional={name: JSON | st.just(value) for name, value in GOOD.items()} | {"scope": JSON, "nbf": JSON}
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(codec="ascii"))
    | st.builds(unsigned, HEADERS, CLAIMS, st.sampled_from(["", "AAAA"]))
    | st.just("[" * 90_000)
    | st.just(f"{base64.urlsafe_b64encode(b'[' * 9_000).decode()}.e30.")
)
def test_any_text_is_accepted_or_refused(unsigned_only: BearerTokens, token: str) -> None:
    judgement = unsigned_only.judge(token)
    assert isinstance(judgement, Judgement)
    if isinstance(judgement.verdict, BearerAccepted):
        assert judgement.verdict.name.encode()
        assert judgement.expiry_timestamp_ms is not None
        assert 0 <= judgement.expiry_timestamp_ms <= MAX_TIMESTAMP_MS
