"""The tokens of a worker: its stores, its manager, and everything that hears when a token changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial

from kafka_dt.audit.recorder import Recorder
from kafka_dt.config import SecretKeyFiles, Settings
from kafka_dt.identity.revocation import Revocations
from kafka_dt.idle import IdleTime
from kafka_dt.metrics import Counts
from kafka_dt.node.secret_keys import Membership
from kafka_dt.node.shared import Shared
from kafka_dt.server.audited.requests import record_keys
from kafka_dt.server.connections.sessions import Sessions
from kafka_dt.stores import MakeStores, StoreNeeds, WorkerPlace
from kafka_dt.tokens import (
    CreationLimits,
    HmacAlgorithm,
    Keyring,
    Token,
    TokenCache,
    TokenLimits,
    TokenManager,
)

_LOG = logging.getLogger(__name__)


class WorkerTokens:
    """The tokens of one worker.

    Args:
        settings: of the node.
        place: which worker it is.
        make_stores: builds the stores.
        executor: threads for expensive computations of the stores.
        shared: with the other workers of the node, which hear of revocations.
        idle: when to do computations that can wait.
        recorder: hears of changed keys; None where nothing is written down.
        counts: where the store counts.
        broker_id: the id that the node shows to clients.
        end_sessions_on_expiry: whether a connection is closed when its token expires, as a gateway does.
        now_ms: the wall clock, milliseconds since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        place: WorkerPlace,
        make_stores: MakeStores,
        executor: Executor,
        shared: Shared,
        *,
        idle: IdleTime,
        recorder: Recorder | None,
        counts: Counts,
        broker_id: int,
        end_sessions_on_expiry: bool,
        now_ms: Callable[[], int],
    ) -> None:
        files = SecretKeyFiles(settings)
        keyring = _keyring(files, HmacAlgorithm(settings.hmac_algorithm))
        if keyring is not None and recorder is not None:
            keyring.on_change(partial(record_keys, recorder, keyring))
        limits = _limits(settings)
        self._keyring = keyring
        self.cache = TokenCache(keyring)
        self.stores = make_stores(StoreNeeds(keyring, self.cache, limits, executor, idle, counts))
        self.membership = Membership(
            settings,
            files,
            keyring,
            self.stores.cluster,
            self.stores.keyed_tokens,
            place=place,
            broker_id=broker_id,
        )
        self.manager = TokenManager(
            self.stores.tokens,
            self.stores.token_changes,
            self.cache,
            limits,
            now_ms=now_ms,
            creation_counts=shared.creations,
        )
        self.sessions = Sessions(self._token, now_ms, end_on_expiry=end_sessions_on_expiry)
        self.cache.on_change(self.sessions.token_changed)
        self.revocations = Revocations(shared.board, self.manager.prove, self.cache.held, self.sessions.end_by)
        self.cache.on_change(self.revocations.token_changed)

    def key_roles(self) -> Mapping[str, str]:
        """Return the ids of the secret keys, each with `current` or `previous`."""
        keys = self._keyring.keys if self._keyring else ()
        return {key.id: "previous" if number else "current" for number, key in enumerate(keys)}

    def end_stale_sessions(self) -> None:
        """End the sessions of the tokens that may have been revoked unnoticed, and log how many these were."""
        if not self.manager.is_stale():
            return
        ended = self.sessions.end_if(self.manager.is_stale)
        if ended:
            _LOG.warning(
                "Closed %d connection%s that logged in by token: the store cannot be asked which tokens were revoked "
                "(kafka.dt.token.sessions.end.when.stale)",
                ended,
                "s"[: ended != 1],
            )

    def _token(self, token_id: str) -> Token | None:
        held = self.cache.get(token_id)
        return held.token if held else None


def _keyring(files: SecretKeyFiles, algorithm: HmacAlgorithm) -> Keyring | None:
    """Make the ring of the keys that there are; without a current one, tokens are disabled."""
    return Keyring(files.keys.current, algorithm, files.keys.previous) if files.keys else None


def _limits(settings: Settings) -> TokenLimits:
    creations = CreationLimits(
        tokens_per_owner=settings.tokens_per_owner_max,
        creates_per_minute=settings.token_creates_per_minute_max,
        renewers=settings.token_renewers_max,
        token_bytes=settings.token_bytes_max,
    )
    return TokenLimits(settings.max_lifetime_ms, settings.expiry_time_ms, creations)
