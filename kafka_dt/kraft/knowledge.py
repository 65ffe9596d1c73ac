"""Which states of tokens are news: what a cluster describes, beside the changes that this worker has made itself.

The answers of one broker come in order, but each may be older than a change of this worker that the cluster has
acknowledged. So a change hides its token from answers until one is proved to be newer than the change. Otherwise
answers are believed as a whole: an id that is not in one has gone. It never returns, because an answer over another
connection is used only if it is proved to be newer than everything before it.

A controller decides on its own image, which is behind for some tenths of a second, and for many seconds under load: a
renewal that it gets then may bring a deleted token back. A token that this worker has deleted stays hidden, whenever it
comes back, and the listener of `on_return` deletes it again. Other workers know it as long as the cluster has it.

Another node tells that it has ended a token (`heard`), which no answer may have yet. If the message proves that its
writer knows the token, it is believed until an answer is proved to be newer than the message. It can only end a token,
and once: who repeats it when the token was renewed since ends nothing.
A message about a token that is not known is kept, for an answer that is on its way may have the token, and with it what
shows whether the message is true. Then the token is hidden if the message says that it was deleted, and else it ends
when the message says.

A broker makes the HMAC of a token with its own secret key. So a token whose HMAC changes shows that the servers of the
cluster have different keys, which nothing else tells: the log does.

Limit: a worker remembers its last `REMEMBERED_DELETIONS`, as many messages that it has obeyed, and as many about tokens
that it does not know.

What is known is in the node's cache, which hears of nothing but this.

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_dt.tokens import StoredToken
from kafka_dt.tokens.sharing import in_turns

if TYPE_CHECKING:
    from kafka_dt.kraft.news.message import Revocation
    from kafka_dt.tokens import ChangeListener, KnownTokens

_LOG = logging.getLogger(__name__)

REMEMBERED_DELETIONS: Final = 10_000
"""Some minutes of as many as a cluster makes."""
GONE: Final = -1
"""The end of a token that a message says was deleted: before every other end."""

_Key = TypeVar("_Key")

ReturnListener = Callable[[StoredToken], None]
"""Called with a token that is there, though this worker has deleted it."""


class Knowledge:
    """Tells the listener what is new.

    Args:
        cache: what the listener has been told.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(self, cache: KnownTokens, monotonic: Callable[[], float]) -> None:
        self._cache = cache
        self._monotonic = monotonic
        self._listener: ChangeListener = lambda *_: None
        self._return_listener: ReturnListener = lambda *_: None
        self._changed: dict[str, float] = {}
        """The ids of the tokens that this worker has changed, or that a message has ended, each with the moment."""
        self._unverified = _Unverified()
        self._deleted: dict[str, None] = {}
        """The ids of the tokens that it has deleted, the last one last."""
        self._obeyed: dict[Revocation, None] = {}
        """The messages by which known tokens end sooner, the last one last."""
        self._missed_s: float | None = None
        """The moment before which messages may have been missed."""

    @property
    def unproved(self) -> bool:
        """Whether there is a change, or a message, that no answer has been proved to be newer than."""
        return bool(self._changed or self._unverified) or self._missed_s is not None

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener: the cache's."""
        self._listener = listener

    def on_return(self, listener: ReturnListener) -> None:
        """Set the one listener that is called with a token that is there again, though this worker has deleted it."""
        self._return_listener = listener

    def changed(self, token_id: str, stored: StoredToken | None) -> None:
        """Tell the outcome of a change of this worker, which the cluster has just acknowledged; None: deleted."""
        self._hide(token_id)
        if stored is None:
            _remember(self._deleted, token_id)
        self._listener(token_id, stored)

    def heard(self, message: Revocation) -> None:
        """Take a message of a node that has ended a token; any writer of the topic may have made it up."""
        token_id = message.token_id
        if token_id in self._deleted:
            return
        held = self._cache.get(token_id)
        end_ms = message.end_timestamp_ms
        if held is None:
            self._unverified.keep(message, self._monotonic())
        elif message.is_proved_by(held.hmac):
            if end_ms is None:
                self._hide(token_id)
                self._listener(token_id, None)
            elif end_ms < held.token.end_timestamp_ms and message not in self._obeyed:
                # Repeated all the time it would keep a token from logging in that was renewed since.
                _remember(self._obeyed, message)
                self._hide(token_id)
                self._listener(token_id, StoredToken(held.token.expiring_at(end_ms), hmac=held.hmac))

    def missed(self) -> None:
        """Take note that messages may have been missed that were written before this call."""
        self._missed_s = self._monotonic()

    def give_up(self, token_id: str) -> None:
        """Take a token as the cluster has it, though this worker has deleted it."""
        self._deleted.pop(token_id, None)

    async def take(
        self, tokens: Mapping[str, StoredToken], fresh: Collection[str], asked_s: float | None = None
    ) -> None:
        """Tell what is new in an answer.

        Args:
            tokens: all of them, by their ids.
            fresh: the ids of those that may not be as in the answer that was taken before.
            asked_s: everything acknowledged before this moment is proved to be in the answer; None: nothing is.
        """
        settled = [] if asked_s is None else self._settle(asked_s)
        # What is not hidden any more has been proved to be newer than the deletion.
        for token_id in (self._deleted.keys() & tokens.keys()) - self._changed.keys():
            self._changed[token_id] = self._monotonic()
            self._return_listener(tokens[token_id])
        gone = [token_id for token_id in self._cache.copied_ids() if token_id not in tokens]
        async for batch in in_turns(gone):
            for token_id in batch:
                if token_id not in self._changed:
                    self._listener(token_id, None)
        other_hmac = ""
        async for batch in in_turns([*fresh, *settled]):
            for token_id in batch:
                stored = self._believed(token_id, tokens.get(token_id))
                if stored is not None and self._is_news(token_id, stored):
                    held = self._cache.get(token_id)
                    if held is not None and held.hmac != stored.hmac:
                        other_hmac = token_id
                    self._listener(token_id, stored)
        if other_hmac:
            _LOG.warning(
                "The upstream cluster tells another HMAC of delegation token %s than before, so clients that have it "
                "are refused: set the same delegation.token.secret.key on all its brokers and controllers",
                other_hmac,
            )

    def _settle(self, asked_s: float) -> Sequence[str]:
        """Forget the changes that an answer is newer than; returns the ids of their tokens."""
        if self._missed_s is not None and self._missed_s < asked_s:
            self._missed_s = None
        older = [token_id for token_id, at_s in self._changed.items() if at_s < asked_s]
        for token_id in older:
            del self._changed[token_id]
        return [*older, *self._unverified.forget(asked_s)]

    def _hide(self, token_id: str) -> None:
        """Believe no answer about a token until one is proved to be newer than now."""
        self._changed[token_id] = self._monotonic()

    def _believed(self, token_id: str, stored: StoredToken | None) -> StoredToken | None:
        """Return what to believe of a token that an answer has; None: nothing."""
        if stored is None or token_id in self._changed:
            return None
        end_ms = self._unverified.end_ms(stored)
        if end_ms is None:
            return stored
        if end_ms == GONE:
            return None
        return replace(stored, token=stored.token.expiring_at(min(end_ms, stored.token.end_timestamp_ms)))

    def _is_news(self, token_id: str, stored: StoredToken) -> bool:
        held = self._cache.get(token_id)
        return held is None or held.token != stored.token or held.hmac != stored.hmac


def _remember(memory: dict[_Key, None], key: _Key) -> None:
    """Add to a memory, which forgets the oldest."""
    memory[key] = None
    if len(memory) > REMEMBERED_DELETIONS:
        del memory[next(iter(memory))]


class _Unverified:
    """Messages about tokens that are not known: only a token shows whether the writer of a message knows it.

    Any writer of the topic may make up messages, also many about one token. Those that are not true hide nothing, and
    take the place of true ones only if they are more than a worker keeps.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[Revocation, float]] = {}
        """By token id, each with the moment at which it was heard last."""
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    def keep(self, message: Revocation, at_s: float) -> None:
        """Keep a message, if there is room for it."""
        messages = self._of.get(message.token_id, {})
        if message not in messages:
            if self._count >= REMEMBERED_DELETIONS:
                return
            self._count += 1
        messages[message] = at_s
        self._of[message.token_id] = messages

    def end_ms(self, stored: StoredToken) -> int | None:
        """Return the earliest end that true messages tell of a token: GONE if it was deleted, None without one."""
        messages = self._of.get(stored.token.token_id, ())
        ends_ms = [
            GONE if each.end_timestamp_ms is None else each.end_timestamp_ms
            for each in messages
            if stored.hmac is not None and each.is_proved_by(stored.hmac)
        ]
        return min(ends_ms, default=None)

    def forget(self, before_s: float) -> Sequence[str]:
        """Forget the messages that were not heard again since a moment; returns the ids of their tokens."""
        ids = [token_id for token_id, messages in self._of.items() if min(messages.values()) < before_s]
        for token_id in ids:
            left = {message: at_s for message, at_s in self._of[token_id].items() if at_s >= before_s}
            self._count -= len(self._of[token_id]) - len(left)
            if left:
                self._of[token_id] = left
            else:
                del self._of[token_id]
        return ids
