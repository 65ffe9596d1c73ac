"""Delegation tokens: the values, the rules and the cache, without a socket, a database or a clock of their own.

Read `token.py` first (what a token is), then `manager.py` (which principal may do what with it, in which order it is
checked), then `store.py` (the interface of the place that keeps the tokens, and its contract). `changes.py` has the
rules of a renewal and an expiry; `guarded.py` applies them to a store that only keeps tokens. `cache.py` is what this
process knows of the store; `lookup.py`, `listing.py` and `purge.py` are the ways in which the manager uses both;
`sharing.py` and `long_work.py` keep concurrent requests out of each other's way; `new_token.py`, `creation_limits.py`
and `creation_counts.py` are the way to a new one; `secret_key.py` and `keyring.py` make secrets; `errors.py` is the
tree of refusals.
"""

from kafka_dt.tokens.cache import CachedToken, TokenCache, TokenListener
from kafka_dt.tokens.changes import Change, Expiry, Renewal
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
)
from kafka_dt.tokens.guarded import GuardedChanges, VersionConflict, VersionedStore
from kafka_dt.tokens.keyring import Keyring
from kafka_dt.tokens.long_work import LongWork, Turns, is_long
from kafka_dt.tokens.lookup import has_token_id_form
from kafka_dt.tokens.manager import TokenLimits, TokenManager
from kafka_dt.tokens.new_token import NewToken
from kafka_dt.tokens.principal import ANONYMOUS, USER_TYPE, InvalidPrincipal, Principal
from kafka_dt.tokens.secret_key import HmacAlgorithm, SecretKey
from kafka_dt.tokens.store import ChangeListener, KeyedTokens, StoredToken, TokenChanges, TokenSource
from kafka_dt.tokens.token import DelegationToken, Token, ends_sooner

__all__ = [
    "ANONYMOUS",
    "USER_TYPE",
    "CachedToken",
    "Change",
    "ChangeListener",
    "CreationCounts",
    "CreationLimits",
    "DelegationToken",
    "Expiry",
    "GuardedChanges",
    "HmacAlgorithm",
    "InvalidPrincipal",
    "InvalidPrincipalType",
    "KeyedTokens",
    "Keyring",
    "LongWork",
    "NewToken",
    "Principal",
    "Renewal",
    "SecretKey",
    "StoreUnavailable",
    "StoredToken",
    "Token",
    "TokenAuthorizationFailed",
    "TokenCache",
    "TokenChanges",
    "TokenError",
    "TokenExpired",
    "TokenLimitExceeded",
    "TokenLimits",
    "TokenListener",
    "TokenManager",
    "TokenNotFound",
    "TokenOwnerMismatch",
    "TokenRequestNotAllowed",
    "TokenSource",
    "TokenTooLarge",
    "TokensDisabled",
    "TooManyCreates",
    "Turns",
    "VersionConflict",
    "VersionedStore",
    "counts_bytes",
    "ends_sooner",
    "has_token_id_form",
    "is_long",
]
