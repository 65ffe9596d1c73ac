"""SCRAM credentials of tokens, made when first needed and kept in a bounded cache; and decoys for unknown names.

A broker derives the credentials of every token when it starts, two PBKDF2 each; here a token costs one PBKDF2 when it
first logs in with a mechanism, off the event loop. Whoever logs in at the same time waits for the same derivation.
A token that may be of several secret keys costs one for each of them.

Salts are derived from the name, for tokens and for names that nobody has alike. A stranger who tries an id sees the
same salt each time, on every worker and node, whether the id is a token's or not.

Source: KIP-48 (password = base64 of the HMAC, 4096 iterations); Kafka's ScramFormatter; DESIGN.md, "No oracle".
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import string
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Final

from kafka_dt.tokens import DelegationToken
from protocol.sasl import ScramCredential, ScramMechanism, derive_credential

ITERATIONS: Final = 4096
SALT_BITS: Final = 130
"""As many as `ScramFormatter.secureRandomString` of Kafka draws."""
MAX_DERIVED: Final = 50_000
"""How many credentials are kept; about 400 bytes each."""

_DIGITS: Final = string.digits + string.ascii_lowercase


class Salts:
    """Salts that depend on a name and on a secret of the cluster, so that strangers cannot compute them.

    Args:
        secret: the same on every worker and node.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def salt(self, mechanism: ScramMechanism, name: str) -> bytes:
        """Give the salt of a name, in the form of those that Kafka's tools give to users: 130 bits as base 36 text."""
        number = int.from_bytes(self._derive(b"salt", mechanism, name)) % 2**SALT_BITS
        return _base36(number).encode("ascii")

    def decoy(self, mechanism: ScramMechanism, name: str, counts: Sequence[int] = ()) -> ScramCredential:
        """Give a credential for a name that nobody has: it looks like somebody's, and no proof fits it.

        Args:
            mechanism: of the login.
            name: the name.
            counts: the iterations that users have; the name decides which it is. None of them stands for a token's.
        """
        choice = int.from_bytes(self._derive(b"iterations", mechanism, name))
        return ScramCredential(
            salt=self.salt(mechanism, name),
            stored_key=self._derive(b"stored", mechanism, name)[: mechanism.hash_bytes],
            server_key=self._derive(b"server", mechanism, name)[: mechanism.hash_bytes],
            iterations=counts[choice % len(counts)] if counts else ITERATIONS,
        )

    def _derive(self, purpose: bytes, mechanism: ScramMechanism, name: str) -> bytes:
        text = b"\0".join((purpose, mechanism.encode(), name.encode("utf-8", "surrogatepass")))
        return hmac.digest(self._secret, text, "sha512")


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or _DIGITS[0]


class TokenCredentials:
    """The SCRAM credentials of tokens.

    Args:
        salts: where salts come from.
        executor: threads that PBKDF2 runs on; it releases the interpreter's lock.
        max_derived: how many credentials are kept, those used longest ago go first.
        derive: PBKDF2 and what follows; an argument for tests.
    """

    def __init__(
        self,
        salts: Salts,
        executor: Executor,
        *,
        max_derived: int = MAX_DERIVED,
        derive: Callable[[ScramMechanism, str, bytes, int], ScramCredential] = derive_credential,
    ) -> None:
        self._salts = salts
        self._executor = executor
        self._max_derived = max_derived
        self._derive = derive
        self._derived: OrderedDict[tuple[ScramMechanism, bytes], ScramCredential] = OrderedDict()
        self._under_way: dict[tuple[ScramMechanism, bytes], asyncio.Future[ScramCredential]] = {}

    def find(self, mechanism: ScramMechanism, token: DelegationToken) -> ScramCredential | None:
        """Give the credential of a token if it has been derived already."""
        found = self._find(mechanism, token.hmac)
        if found is None or not token.alternatives:
            return found
        others = [self._find(mechanism, hmac) for hmac in token.alternatives]
        return None if None in others else replace(found, alternatives=tuple(filter(None, others)))

    async def derive(self, mechanism: ScramMechanism, token: DelegationToken) -> ScramCredential:
        """Give the credential of a token, deriving it off the event loop unless somebody is at it already."""
        first = await self._derived_once(mechanism, token.token.token_id, token.hmac)
        if not token.alternatives:
            return first
        derivations = (self._derived_once(mechanism, token.token.token_id, hmac) for hmac in token.alternatives)
        return replace(first, alternatives=tuple(await asyncio.gather(*derivations)))

    def _find(self, mechanism: ScramMechanism, hmac: bytes) -> ScramCredential | None:
        # The HMAC is the key: a token with the same id under another secret key is another token.
        key = (mechanism, hmac)
        found = self._derived.get(key)
        if found is not None:
            self._derived.move_to_end(key)
        return found

    async def _derived_once(self, mechanism: ScramMechanism, token_id: str, hmac: bytes) -> ScramCredential:
        if found := self._find(mechanism, hmac):
            return found
        key = (mechanism, hmac)
        future = self._under_way.get(key)
        if future is None:
            password = base64.b64encode(hmac).decode("ascii")
            salt = self._salts.salt(mechanism, token_id)
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._executor, self._derive, mechanism, password, salt, ITERATIONS)
            self._under_way[key] = future
            future.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(future)

    def _keep(self, key: tuple[ScramMechanism, bytes], done: asyncio.Future[ScramCredential]) -> None:
        del self._under_way[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._derived[key] = done.result()
        if len(self._derived) > self._max_derived:
            self._derived.popitem(last=False)
