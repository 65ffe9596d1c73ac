"""Logins by OAUTHBEARER: a signature by a key of the issuer, and claims that hold here and now.

`BearerTokens.judge` answers from memory, which is what nearly every login needs; for a token that names a key that is
not held it gives a coroutine, which may read the issuer's keys again.

Only algorithms with a public key are taken: a token that says `none`, or `HS256` with the public key as the secret, is
refused whatever it holds. Unsigned tokens are a setting of their own. Signatures and the claims of RFC 7519 are
joserfc's: it takes the clock and the list of algorithms as arguments.

Source: RFC 7519, RFC 7628, RFC 8725 section 3; KIP-255, KIP-768;
org.apache.kafka.common.security.oauthbearer.internals.secured.ValidatorAccessTokenValidator.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, Never

from joserfc.errors import InvalidClaimError, JoseError, UnsupportedAlgorithmError
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact
from joserfc.jwt import ClaimsOption, JWTClaimsRegistry

from kafka_dt.identity.login.exchange import Account, Exchange
from kafka_dt.identity.mechanisms.mechanism import OpenMechanism, Resources
from kafka_dt.identity.oauth.jwks import AmbiguousKey, Jwks, KeyNotHeld
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import (
    BearerAccepted,
    BearerRejected,
    BearerVerdict,
    OAuthBearerServer,
    StepResult,
    VerdictRequest,
)
from kafka_dt_protocol.sasl.text import printable

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512"),
    *("PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519"),
)
UNSIGNED: Final = "none"
MAX_TIMESTAMP_MS: Final = 2**63 - 1
"""The last instant that Kafka can tell, in milliseconds since 1970."""
MAX_NAME_CHARACTERS: Final = 1024
"""How long the principal's name may be; OpenID Connect allows a subject 255."""

_TIMES: Final = ("exp", "iat", "nbf")
_NOT_IN_A_NAME: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories: control characters, surrogates (which UTF-8 cannot encode), and ends of lines and paragraphs."""


class _Registry(JWSRegistry):
    """What a token may look like: headers may be longer than joserfc's default, some issuers put certificates there."""

    max_header_length = 16 * 1024

    def get_alg(self, name: str) -> Any:
        # joserfc warns of EdDSA, which RFC 9864 renames to Ed25519; issuers still say EdDSA.
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"the algorithm {name} is not allowed")
        return self.algorithms[name]


_REGISTRY: Final = _Registry(strict_check_header=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of judging a token."""

    verdict: BearerVerdict
    expiry_timestamp_ms: int | None = None
    """When an accepted token ends."""


class BearerTokens:
    """Judges the tokens of one listener; without keys only unsigned tokens are taken."""

    def __init__(self, settings: OAuthBearerSettings, keys: Jwks | None, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._keys = keys
        self._now_ms = now_ms
        self._claims = _expected_claims(settings)

    async def start(self) -> None:
        """Read the keys and keep them fresh; raises ConfigError as Jwks.start does."""
        if self._keys is not None:
            await self._keys.start()

    async def close(self) -> None:
        """Stop reading the keys."""
        if self._keys is not None:
            await self._keys.close()

    def judge(self, token: str) -> Judgement | Coroutine[Any, Any, Judgement]:
        """Judge a token; gives a coroutine where the keys have to be read again."""
        try:
            return self._judge(token)
        except KeyNotHeld:
            return self._judge_again(token)

    async def _judge_again(self, token: str) -> Judgement:
        unknown = _rejected("it is signed with a key that the issuer does not publish")
        if self._keys is None or not await self._keys.read_again():
            return unknown
        try:
            return self._judge(token)
        except KeyNotHeld:
            return unknown

    def _judge(self, token: str) -> Judgement:
        try:
            claims = self._verified(extract_compact(token.encode("ascii"), registry=_REGISTRY))
            self._check_times_and_names(claims)
            return self._accepted(claims)
        except AmbiguousKey:
            return _rejected("it names no key and not exactly one fits its algorithm")
        except InvalidClaimError as error:
            return _rejected(f"a claim does not hold: {error.description}")
        except JoseError as error:
            # The name of an unknown algorithm is text of the peer.
            return _rejected(printable(f"{error.error}: {error.description}"))
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            # Text of the peer may be in the error.
            return _rejected("it is no JSON Web Token")

    def _verified(self, token: CompactSignature) -> dict[str, Any]:
        if not isinstance(token.protected, dict):  # joserfc takes a list or a text with "alg" in it
            raise TypeError
        if token.headers().get("alg") == UNSIGNED and self._settings.allow_unsigned:
            if token.segments["signature"]:
                raise InvalidClaimError("alg", "an unsigned token with a signature")
        elif self._keys is None:
            raise InvalidClaimError("alg", "only unsigned tokens are taken here")
        elif not validate_compact(token, self._keys.select, registry=_REGISTRY):
            raise InvalidClaimError("signature", "the signature is wrong")
        claims = json.loads(token.payload, parse_constant=_no_json)
        if not isinstance(claims, dict):
            raise TypeError
        return claims

    def _check_times_and_names(self, claims: dict[str, Any]) -> None:
        for time in _TIMES:
            if claims.get(time) is not None and not _is_instant(claims[time]):
                raise InvalidClaimError(time, f"'{time}' is no number of seconds since 1970 that Kafka can tell")
        if not self._settings.expected_audience and claims.get("aud") is not None:
            raise InvalidClaimError("aud", "it names an audience, and no expected audience is set")
        JWTClaimsRegistry(
            now=self._now_ms() // 1000, leeway=self._settings.clock_skew_seconds, **self._claims
        ).validate(claims)
        scopes = claims.get(self._settings.scope_claim_name)
        if isinstance(scopes, str):
            scopes = [scopes]
        if isinstance(scopes, list) and not _are_scopes(scopes):
            raise InvalidClaimError(self._settings.scope_claim_name, "a scope is empty, there twice or no text")

    def _accepted(self, claims: Mapping[str, Any]) -> Judgement:
        name = principal_name(claims, self._settings.sub_claim_name)
        return Judgement(BearerAccepted(name), math.floor(claims["exp"] * 1000))


def open_bearer(settings: OAuthBearerSettings, _listener: str, resources: Resources) -> OpenMechanism:
    """Judge bearer tokens as a listener's settings say."""
    keys = Jwks(settings, resources.threads, resources.now_ms) if settings.jwks_url else None
    tokens = BearerTokens(settings, keys, resources.now_ms)

    return OpenMechanism(lambda _: BearerExchange(tokens), tokens.start, tokens.close)


class BearerExchange(Exchange):
    """One login by OAUTHBEARER, which a verdict on the client's bearer token decides."""

    def __init__(self, tokens: BearerTokens) -> None:
        self._machine = OAuthBearerServer()
        self._tokens = tokens

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client's first message, or its answer to a refusal."""
        self.foregone = None
        outcome = self._machine.step(message)
        if not isinstance(outcome, VerdictRequest):
            return outcome
        judgement = self._tokens.judge(outcome.bearer_token)
        return self._take(judgement) if isinstance(judgement, Judgement) else self._take_later(judgement)

    async def _take_later(self, judgement: Coroutine[Any, Any, Judgement]) -> StepResult:
        return self._take(await judgement)

    def _take(self, judgement: Judgement) -> StepResult:
        verdict = judgement.verdict
        if isinstance(verdict, BearerAccepted):
            self.account = Account(Principal.user(verdict.name), ends_timestamp_ms=judgement.expiry_timestamp_ms)
        else:
            self.foregone = verdict.detail
        return self._machine.resume(verdict)


def principal_name(claims: Mapping[str, Any], claim: str) -> str:
    """Read the principal's name in the claims of a bearer token.

    Raises:
        InvalidClaimError: there is none, or one that cannot be a principal's.
    """
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise InvalidClaimError(claim, "the principal's name is missing or empty")
    name = name.strip()
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidClaimError(claim, f"the principal's name has more than {MAX_NAME_CHARACTERS} characters")
    if any(unicodedata.category(character) in _NOT_IN_A_NAME for character in name):
        raise InvalidClaimError(claim, "the principal's name has a control character or half a character")
    return name


def _expected_claims(settings: OAuthBearerSettings) -> dict[str, ClaimsOption]:
    claims: dict[str, ClaimsOption] = {"exp": {"essential": True}, "iat": {"essential": True}}
    if settings.expected_issuer:
        claims["iss"] = {"essential": True, "value": settings.expected_issuer}
    if settings.expected_audience:
        claims["aud"] = {"essential": True, "values": list(settings.expected_audience)}
    return claims


def _is_instant(value: object) -> bool:
    """Say whether a claim is an instant that Kafka can tell in milliseconds; NaN and infinity are none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= MAX_TIMESTAMP_MS // 1000


def _no_json(constant: str) -> Never:
    """Refuse what Python's parser takes and JSON has not: NaN, Infinity, -Infinity."""
    raise ValueError(constant)


def _are_scopes(scopes: list[Any]) -> bool:
    if not all(isinstance(scope, str) and scope.strip() for scope in scopes):
        return False
    return len({scope.strip() for scope in scopes}) == len(scopes)


def _rejected(detail: str) -> Judgement:
    return Judgement(BearerRejected(f"the bearer token is refused: {detail}"))
