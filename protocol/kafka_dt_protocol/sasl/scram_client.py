"""The client side of SCRAM, with Kafka's `tokenauth` extension.

    client = ScramClient(ScramMechanism.SHA_256, username, password, client_nonce, token=True)
    send client.first()                        # n,,n=...,r=...,tokenauth=true
    send client.challenge(server_first)        # c=biws,r=...,p=...; costs a PBKDF2
    client.verify(server_final)                # returns if the server knows the credential too

`challenge` hashes the password as often as the server says, within 4096 to 1,000,000 times (about half a second), so
call it off the event loop. A caller that logs in often passes `derive`, a cached `derive_keys`. Whatever a server
sends ends in a result or a ScramError; after an error the machine has ended.

Source: RFC 5802 sections 3, 5 and 9; org.apache.kafka.common.security.scram.internals.ScramSaslClient.
"""

import hmac
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeAlias

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.errors import ServerNonceMismatch, ServerSignatureMismatch, UnacceptableIterations
from kafka_dt_protocol.sasl.scram import ScramKeys, ScramMechanism, client_proof, derive_keys
from kafka_dt_protocol.sasl.scram_messages import (
    client_final_start,
    encode_base64,
    encode_saslname,
    is_nonce,
    parse_server_final,
    parse_server_first,
)
from kafka_dt_protocol.sasl.text import encode_text

MAX_ITERATIONS = 1_000_000
"""More are refused: a server must not be able to keep its clients busy."""

DeriveKeys: TypeAlias = Callable[[ScramMechanism, str, bytes, int], ScramKeys]
"""`derive_keys`, or one with its arguments that remembers results."""

_GS2_HEADER = "n,,"


class _State(Enum):
    """What is due next."""

    FIRST = auto()
    CHALLENGE = auto()
    VERIFY = auto()
    NOTHING = auto()


class ScramClient:
    """The client side of one SCRAM login.

    Args:
        mechanism: which hash
        username: user name or token id, not empty, without NUL
        password: the password, for a token the base64 text of its HMAC
        client_nonce: fresh and random: printable ASCII without blank and comma
        token: whether to send `tokenauth=true`
        derive: turns the password into keys

    Raises:
        LocalProtocolError: an argument cannot be sent
    """

    __slots__ = ("_bare", "_client_nonce", "_derive", "_mechanism", "_password", "_signature", "_state")

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: str,
        client_nonce: str,
        token: bool = False,
        *,
        derive: DeriveKeys = derive_keys,
    ) -> None:
        if not is_nonce(client_nonce):
            raise LocalProtocolError("a SCRAM nonce is printable ASCII without blank and comma")
        if not username or "\0" in username:
            raise LocalProtocolError("a SCRAM user name is not empty and has no NUL character")
        encode_text(username)
        self._mechanism = mechanism
        self._password = password
        self._client_nonce = client_nonce
        self._derive = derive
        extension = ",tokenauth=true" if token else ""
        self._bare = f"n={encode_saslname(username)},r={client_nonce}{extension}"
        self._signature = b""
        self._state = _State.FIRST

    def first(self) -> bytes:
        """Return the client-first message.

        Raises:
            LocalProtocolError: it was already sent
        """
        self._advance(_State.FIRST, _State.CHALLENGE)
        return f"{_GS2_HEADER}{self._bare}".encode()

    def challenge(self, server_first: bytes) -> bytes:
        """Take the server-first message and return the client-final; costs a PBKDF2.

        Raises:
            ScramError: the message is malformed, or its nonce or count of iterations is not acceptable
            LocalProtocolError: no challenge is due, or the password has no UTF-8 form
        """
        self._advance(_State.CHALLENGE, _State.NOTHING)
        message = parse_server_first(server_first)
        if not message.nonce.startswith(self._client_nonce) or message.nonce == self._client_nonce:
            raise ServerNonceMismatch
        minimum = self._mechanism.min_iterations
        if not minimum <= message.iterations <= MAX_ITERATIONS:
            raise UnacceptableIterations(message.iterations, minimum, MAX_ITERATIONS)
        keys = self._derive(self._mechanism, self._password, message.salt, message.iterations)
        without_proof = client_final_start(_GS2_HEADER, message.nonce)
        auth_message = b",".join((self._bare.encode(), server_first, without_proof.encode()))
        self._signature = self._mechanism.hmac(keys.server_key, auth_message)
        self._state = _State.VERIFY
        return f"{without_proof},p={encode_base64(client_proof(self._mechanism, keys, auth_message))}".encode()

    def verify(self, server_final: bytes) -> None:
        """Take the server-final message; returning means that both sides know the credential.

        Raises:
            ScramError: the server refused, or did not prove that it knows the credential
            LocalProtocolError: no server-final is due
        """
        self._advance(_State.VERIFY, _State.NOTHING)
        if not hmac.compare_digest(parse_server_final(server_final), self._signature):
            raise ServerSignatureMismatch

    def _advance(self, due: _State, then: _State) -> None:
        if self._state is not due:
            raise LocalProtocolError(f"SCRAM: {due.name.lower()} is not due, but {self._state.name.lower()}")
        self._state = then
