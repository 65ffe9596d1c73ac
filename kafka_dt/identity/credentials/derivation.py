"""SCRAM credentials of tokens, derived in idle time or when first needed, and kept; and decoys for unknown names.

A token costs a node one PBKDF2 for each mechanism, off the event loop, and one for each secret key that it may be of.
Workers of a node share the result (`shared.py`), and `ahead.py` has it derived before the first login. A name that is
no token's costs none, because an unauthenticated client may try any name. Such a client cannot make a node derive
without end either, with ids that it knows: the cache keeps each derivation that has begun, and drops the others with
their connections (`newest_first.py`).

Salts are derived from the name, for tokens and for unknown names alike. A client that tries an id sees the same salt
each time, on every worker and node, whether the id is a token's or not.

Source: KIP-48 (password = base64 of the HMAC, 4096 iterations);
org.apache.kafka.common.security.scram.internals.ScramFormatter; docs/architecture.md#unknown-names-get-equal-answers.
"""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Final

import scramp
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC

from kafka_dt.identity.credentials.newest_first import NewestFirst
from kafka_dt.identity.credentials.shared import SharedCredentials
from kafka_dt.idle import IdleTime
from kafka_dt.metrics import Counts
from kafka_dt.tokens import DelegationToken
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism, salt_text

ITERATIONS: Final = 4096
MAX_DERIVED: Final = 50_000
"""How many credentials are kept; about 400 bytes each."""
AT_ONCE: Final = 2
"""How many are derived at the same time: a node has a worker for each core, and logins want some of it as well."""
MOST_WAITING: Final = 1_000
"""How many derivations wait for their turn, a second or two of work."""

_Key = tuple[ScramMechanism, str, bytes]
"""Mechanism, token id and HMAC."""

_PLACE_BYTES: Final = 8
"""The first bytes of a digest decide on the iterations, the last ones are the salt."""


class Salts:
    """Salts that depend on a name and on a secret of all nodes of the cluster, so that no client can compute them."""

    def __init__(self, secret: bytes) -> None:
        # To copy a keyed context takes a third of the time in which OpenSSL makes one; each login needs a salt.
        self._keyed = HMAC(secret, hashes.SHA512())
        self._unprovable = {mechanism: self._keys_of_nobody(mechanism) for mechanism in ScramMechanism}

    def salt(self, mechanism: ScramMechanism, name: str) -> bytes:
        """Give the salt of a name, in the form of those that Kafka's tools give to users."""
        return salt_text(self._derive(b"salt", mechanism, name))

    def token(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Give a decoy that looks like the credential of the token with an id, if there is one or not."""
        return self._decoy(mechanism, self._derive(b"salt", mechanism, name), ITERATIONS)

    def no_token(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Give a decoy for a client that calls a token what cannot be one.

        Its salt is another than that of `user`: a user's own salt is as well, and where both were equal the name would
        be no user's.
        """
        return self._decoy(mechanism, self._derive(b"salt of no token", mechanism, name), ITERATIONS)

    def user(self, mechanism: ScramMechanism, name: str, counts: Sequence[int]) -> ScramCredential:
        """Give a decoy that looks like a user's credential.

        Args:
            mechanism: of the login.
            name: the name.
            counts: the iterations of every user, in ascending order. The name decides which of them it is, so that a
                count is as frequent among decoys as it is among users, and one more user changes hardly any decoy.
        """
        digest = self._derive(b"salt", mechanism, name)
        place = int.from_bytes(digest[:_PLACE_BYTES]) * len(counts) >> 8 * _PLACE_BYTES
        return self._decoy(mechanism, digest, counts[place] if counts else ITERATIONS)

    def _decoy(self, mechanism: ScramMechanism, digest: bytes, iterations: int) -> ScramCredential:
        stored_key, server_key = self._unprovable[mechanism]
        return ScramCredential(salt_text(digest), stored_key, server_key, iterations)

    def _keys_of_nobody(self, mechanism: ScramMechanism) -> tuple[bytes, bytes]:
        """Give keys for all decoys: no proof fits the stored key, and the server key is never sent."""
        stored_key, server_key = (self._derive(purpose, mechanism, "") for purpose in (b"stored", b"server"))
        return stored_key[: mechanism.hash_bytes], server_key[: mechanism.hash_bytes]

    def _derive(self, purpose: bytes, mechanism: ScramMechanism, name: str) -> bytes:
        text = b"\0".join((purpose, mechanism.encode(), name.encode("utf-8", "surrogatepass")))
        derivation = self._keyed.copy()
        derivation.update(text)
        return derivation.finalize()


def derive_token_credential(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """Derive the credential of a token; costs a PBKDF2.

    scramp derives it. It prepares passwords by SASLprep, which Kafka does not; the password of a token is base64 text,
    which SASLprep leaves as it is. No user's password comes here, because the clients send it salted (decision 0019).

    Args:
        mechanism: of the login.
        password: the base64 text of the token's HMAC.
        salt: 12 bytes or more.
        iterations: rounds of PBKDF2, 4096 or more.
    """
    scram = scramp.ScramMechanism(mechanism.value)
    _, stored_key, server_key, _ = scram.make_auth_info(password, iterations, salt)
    return ScramCredential(salt, stored_key, server_key, iterations)


class TokenCredentials:
    """The SCRAM credentials of tokens.

    Args:
        salts: where salts come from.
        executor: threads that PBKDF2 runs on; it releases the interpreter's lock.
        known: the token with an id, None if there is none any more; only credentials of known tokens are shared.
        shared: with the other workers of the node; None = with none.
        counts: where derivations are counted.
        max_derived: how many credentials are kept, those used longest ago go first.
        derive: PBKDF2 and what follows; an argument for tests.
    """

    def __init__(
        self,
        salts: Salts,
        executor: Executor,
        *,
        known: Callable[[str], DelegationToken | None] = lambda _: None,
        shared: SharedCredentials | None = None,
        counts: Counts | None = None,
        max_derived: int = MAX_DERIVED,
        derive: Callable[[ScramMechanism, str, bytes, int], ScramCredential] = derive_token_credential,
    ) -> None:
        self._salts = salts
        self._known = known
        self._shared = shared
        self._derivations = (counts or Counts.alone()).derivations
        self._max_derived = max_derived
        self._derive = derive
        self._derived: OrderedDict[_Key, ScramCredential] = OrderedDict()
        self._queue: NewestFirst[_Key, ScramCredential] = NewestFirst(
            executor, self._take, at_once=AT_ONCE, most_waiting=MOST_WAITING
        )

    @property
    def waiting(self) -> int:
        """How many derivations logins wait for."""
        return len(self._queue)

    def find(self, mechanism: ScramMechanism, token: DelegationToken) -> ScramCredential | None:
        """Give the credential of a token if it has been derived already."""
        found = self._find(mechanism, token.token.token_id, token.hmac)
        if found is None or not token.alternatives:
            return found
        others = [self._find(mechanism, token.token.token_id, hmac) for hmac in token.alternatives]
        return None if None in others else replace(found, alternatives=tuple(filter(None, others)))

    async def derive(self, mechanism: ScramMechanism, token: DelegationToken) -> ScramCredential:
        """Give the credential of a token, deriving it off the event loop unless that is under way already.

        Raises:
            TooMuchWaits: so many others were asked for that this one was dropped.
        """
        first = await self._derived_once(mechanism, token.token.token_id, token.hmac)
        if not token.alternatives:
            return first
        derivations = (self._derived_once(mechanism, token.token.token_id, hmac) for hmac in token.alternatives)
        return replace(first, alternatives=tuple(await asyncio.gather(*derivations)))

    async def derive_ahead(self, mechanism: ScramMechanism, token: DelegationToken, idle: IdleTime) -> None:
        """Derive what the workers of the node do not have yet of the credential of a token, in a turn of idle time.

        It is left to the worker that a client logs in at to keep it as its own.
        """
        for key in ((mechanism, token.token.token_id, each) for each in token.hmacs):
            if key not in self._derived and self._find_shared(*key) is None:
                self._share(key, await idle.run(self._derivation(*key)))
                self._derivations.add("ahead")

    def forget(self, token_id: str) -> None:
        """Overwrite what the workers share of a token that has ended."""
        if self._shared is not None:
            self._shared.forget(token_id)

    def _find(self, mechanism: ScramMechanism, token_id: str, hmac: bytes) -> ScramCredential | None:
        # With the HMAC: a token with the same id under another secret key is another token.
        key = (mechanism, token_id, hmac)
        found = self._derived.get(key)
        if found is not None:
            self._derived.move_to_end(key)
        elif found := self._find_shared(*key):
            self._keep(key, found)
        return found

    def _find_shared(self, mechanism: ScramMechanism, token_id: str, hmac: bytes) -> ScramCredential | None:
        if self._shared is None:
            return None
        return self._shared.find(mechanism, token_id, hmac, self._salts.salt(mechanism, token_id), ITERATIONS)

    async def _derived_once(self, mechanism: ScramMechanism, token_id: str, hmac: bytes) -> ScramCredential:
        key = (mechanism, token_id, hmac)
        return self._find(*key) or await self._queue.run(key, self._derivation(*key))

    def _derivation(self, mechanism: ScramMechanism, token_id: str, hmac: bytes) -> Callable[[], ScramCredential]:
        password = base64.b64encode(hmac).decode("ascii")
        return partial(self._derive, mechanism, password, self._salts.salt(mechanism, token_id), ITERATIONS)

    def _take(self, key: _Key, derived: ScramCredential) -> None:
        """Keep and share what was derived for a login."""
        self._derivations.add("login")
        self._keep(key, derived)
        self._share(key, derived)

    def _keep(self, key: _Key, derived: ScramCredential) -> None:
        self._derived[key] = derived
        if len(self._derived) > self._max_derived:
            self._derived.popitem(last=False)

    def _share(self, key: _Key, derived: ScramCredential) -> None:
        """Share a credential, unless its token has ended meanwhile: no later change would overwrite it."""
        mechanism, token_id, hmac = key
        token = self._known(token_id)
        if self._shared is not None and token is not None and token.has_hmac(hmac):
            self._shared.keep(mechanism, token.token, hmac, derived)
