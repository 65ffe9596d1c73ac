"""Delegation tokens: the values, the rules and the cache, without a socket, a database or a clock of their own.

Read `token.py` first (what a token is), then `manager.py` (what may be done with it, by whom, in which order it is
checked), then `store.py` (what is asked of the place that keeps the tokens, and on what "no lost update, no
resurrection" rests). `cache.py` (with `concerned.py`) is what this process knows of the store; `changes.py`,
`lookup.py`, `listing.py` and `purge.py` are the four ways in which the manager uses both; `sharing.py` and
`long_work.py` keep concurrent requests out of each other's way; `new_token.py`, `creation_limits.py` and
`creation_counts.py` are the way to a new one; `secret_key.py` and `keyring.py` make the secrets;
`errors.py` is the tree of refusals.
"""

from kafka_dt.tokens.cache import CachedToken, TokenCache, TokenListener
from kafka_dt.tokens.creation_counts import CreationCounts, counts_bytes
from kafka_dt.tokens.creation_limits import CreationLimits
from kafka_dt.tokens.errors import (
    InvalidPrincipalType,
    StoreUnavailable,
    TokenAuthorizationFailed,
    TokenError,
    TokenExpired,
    TokenLimitExceeded,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
    TokensDisabled,
    TokenTooLarge,
    TooManyCreates,
    VersionConflict,
)
from kafka_dt.tokens.keyring import Keyring
from kafka_dt.tokens.long_work import LongWork, Turns, is_long
from kafka_dt.tokens.lookup import has_token_id_form
from kafka_dt.tokens.manager import TokenLimits, TokenManager
from kafka_dt.tokens.principal import ANONYMOUS, USER_TYPE, InvalidPrincipal, Principal
from kafka_dt.tokens.secret_key import HmacAlgorithm, SecretKey
from kafka_dt.tokens.store import ChangeListener, StoredToken, TokenStore
from kafka_dt.tokens.token import DelegationToken, Token, ends_sooner

__all__ = [
    "ANONYMOUS",
    "USER_TYPE",
    "CachedToken",
    "ChangeListener",
    "CreationCounts",
    "CreationLimits",
    "DelegationToken",
    "HmacAlgorithm",
    "InvalidPrincipal",
    "InvalidPrincipalType",
    "Keyring",
    "LongWork",
    "Principal",
    "SecretKey",
    "StoreUnavailable",
    "StoredToken",
    "Token",
    "TokenAuthorizationFailed",
    "TokenCache",
    "TokenError",
    "TokenExpired",
    "TokenLimitExceeded",
    "TokenLimits",
    "TokenListener",
    "TokenManager",
    "TokenNotFound",
    "TokenOwnerMismatch",
    "TokenRequestNotAllowed",
    "TokenStore",
    "TokenTooLarge",
    "TokensDisabled",
    "TooManyCreates",
    "Turns",
    "VersionConflict",
    "counts_bytes",
    "ends_sooner",
    "has_token_id_form",
    "is_long",
]
