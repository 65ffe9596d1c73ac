"""Delegation tokens: the values, the rules and the cache, without a socket or a database; clocks are passed in.

Read `token.py` first (what a token is), then `manager.py` (which principal may do what with it, in which order it is
checked), then `store.py` (the interface of the place that keeps the tokens, and its contract). `changes.py` has what a
requester may ask for; `guarded.py` applies that to a store that only keeps tokens. `two_stores.py` makes one store of
two, of which one makes no new tokens. `cache.py` is what this process knows of the store, `staleness.py` how old that
may be; `lookup.py` and `purge.py` are the ways in which the manager uses both.
"""

from kafka_dt.tokens.cache import CachedToken, KnownTokens, TokenCache, TokenListener
from kafka_dt.tokens.changes import Change, Expiry, NewToken, OwnConnection, Renewal
from kafka_dt.tokens.creation_limits import CreationCounts, CreationLimits, counts_bytes
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
from kafka_dt.tokens.keyring import HmacAlgorithm, Keyring, SecretKey
from kafka_dt.tokens.lookup import has_token_id_form
from kafka_dt.tokens.manager import TokenLimits, TokenManager
from kafka_dt.tokens.principal import ANONYMOUS, USER_TYPE, InvalidPrincipal, Principal
from kafka_dt.tokens.sharing import LongWork, Turns, is_long
from kafka_dt.tokens.store import ChangeListener, KeyedTokens, StoredToken, TokenChanges, TokenSource
from kafka_dt.tokens.token import DelegationToken, Token, ends_sooner
from kafka_dt.tokens.two_stores import PartOfCache, Store, TwoStores

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
    "KnownTokens",
    "LongWork",
    "NewToken",
    "OwnConnection",
    "PartOfCache",
    "Principal",
    "Renewal",
    "SecretKey",
    "Store",
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
    "TwoStores",
    "VersionConflict",
    "VersionedStore",
    "counts_bytes",
    "ends_sooner",
    "has_token_id_form",
    "is_long",
]
