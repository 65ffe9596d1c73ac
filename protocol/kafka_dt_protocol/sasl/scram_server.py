"""The server side of SCRAM, for users and for delegation tokens.

    server = ScramServer(ScramMechanism.SHA_256, server_nonce)
    server.step(client_first)    -> CredentialRequest(name, token)    or Failure
    server.resume(credential)    -> Challenge(server_first)           or Failure
    server.step(client_final)    -> Success(server_final, name)       or Failure

A driver that has the keys later, because to derive them takes a while, supplies the salt and the iterations first:

    server.resume(parameters)    -> Challenge(server_first)           or Failure
    server.step(client_final)    -> CredentialRequest(name, token)    or Failure
    server.resume(credential)    -> Success(server_final, name)       or Failure

The driver supplies a credential for every name: for one that it does not know a decoy that no proof fits. So known and
unknown names take one path, and both fail at the last step with the same words.

A client-final passes only if its nonce and channel binding are exactly those of this exchange and its proof
covers every byte that both sides sent, extensions in the order of the message. One mistake of a client passes as well:
librdkafka before 2.6.1 (2024) puts its own nonce in front of both once more, which takes nothing away from what the
nonces are for. Brokers up to 3.9 let it in, those of 4.x do not.

A credential may have alternatives, if it is not known which of several passwords the client has. The server tries each
of them, even after one that fits, so that the time does not tell which; it signs the answer with the keys of that one.

Source: RFC 5802 sections 3, 5 and 6; KIP-48 (tokenauth);
org.apache.kafka.common.security.scram.internals.ScramSaslServer and
org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler; librdkafka's pull request 4895.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.errors import MalformedScramMessage
from kafka_dt_protocol.sasl.mechanism import Challenge, CredentialRequest, Failure, Fault, StepResult, Success
from kafka_dt_protocol.sasl.scram import ScramCredential, ScramMechanism, ScramParameters, is_valid_proof
from kafka_dt_protocol.sasl.scram_messages import (
    ClientFinal,
    ClientFirst,
    client_final_start,
    encode_base64,
    is_nonce,
    parse_client_final,
    parse_client_first,
)

TOKENAUTH = "tokenauth"
"""The extension by which a client says that its user name is a token id (Kafka's ScramLoginModule)."""

_OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"


@dataclass(slots=True, init=False, unsafe_hash=True)
class _Exchange:
    """What the server has to remember between its challenge and the client's proof."""

    client_first: Final[ClientFirst]
    server_first: Final[str]
    client_final_starts: Final[tuple[str, str]]
    """By the RFC, and as an old librdkafka has it."""
    known: Final[ScramCredential | ScramParameters]

    def __init__(
        self,
        client_first: ClientFirst,
        server_first: str,
        client_final_starts: tuple[str, str],
        known: ScramCredential | ScramParameters,
    ) -> None:
        self.client_first = client_first
        self.server_first = server_first
        self.client_final_starts = client_final_starts
        self.known = known


@dataclass(slots=True, init=False, unsafe_hash=True)
class _Proof:
    """The client's proof, while the credential is still to come."""

    exchange: Final[_Exchange]
    client_final: Final[ClientFinal]

    def __init__(self, exchange: _Exchange, client_final: ClientFinal) -> None:
        self.exchange = exchange
        self.client_final = client_final


class _Bare(Enum):
    """The states in which there is nothing to remember."""

    NEW = auto()
    ENDED = auto()


class ScramServer:
    """The server side of one SCRAM login: a `ServerMechanism[ScramCredential | ScramParameters]`.

    Args:
        mechanism: which hash
        server_nonce: the server's part of the nonce, fresh and random: printable ASCII without blank and comma

    Raises:
        LocalProtocolError: the nonce has other characters
    """

    __slots__ = ("_mechanism", "_server_nonce", "_state")

    def __init__(self, mechanism: ScramMechanism, server_nonce: str) -> None:
        if not is_nonce(server_nonce):
            raise LocalProtocolError("a SCRAM nonce is printable ASCII without blank and comma")
        self._mechanism = mechanism
        self._server_nonce = server_nonce
        self._state: _Bare | ClientFirst | _Exchange | _Proof = _Bare.NEW

    def step(self, response: bytes) -> StepResult:
        """Take the client-first or the client-final message; after either a credential may be due.

        Raises:
            LocalProtocolError: a credential is due, or the machine has ended
        """
        state = self._state
        self._state = _Bare.ENDED
        try:
            if state is _Bare.NEW:
                return self._take_client_first(parse_client_first(response))
            if isinstance(state, _Exchange):
                return self._take_client_final(state, parse_client_final(response, *state.client_final_starts))
        except MalformedScramMessage as error:
            return Failure(str(error), fault=Fault.GRAMMAR)
        self._state = state
        raise LocalProtocolError("SCRAM expects no message of the client now")

    def resume(self, credential: ScramCredential | ScramParameters) -> StepResult:
        """Take the credential of the name, or a decoy: for the challenge its salt and iterations are enough.

        Raises:
            LocalProtocolError: no credential was asked for, or it is of another salt or count than the challenge, or
                has an alternative that is
        """
        state = self._state
        if isinstance(credential, ScramCredential):
            for other in credential.alternatives:
                if not _is_like(credential, other):
                    raise LocalProtocolError("alternatives of a SCRAM credential have its salt and iterations")
        if isinstance(state, _Proof) and isinstance(credential, ScramCredential):
            if not _is_like(credential, state.exchange.known):
                raise LocalProtocolError("a SCRAM credential has the salt and iterations of the challenge")
            self._state = _Bare.ENDED
            return self._check(state.exchange, state.client_final, credential)
        if isinstance(state, ClientFirst):
            return self._challenge(state, credential)
        raise LocalProtocolError("SCRAM has not asked for a credential")

    def _challenge(self, client_first: ClientFirst, known: ScramCredential | ScramParameters) -> StepResult:
        self._state = _Bare.ENDED
        if known.iterations < self._mechanism.min_iterations:
            return Failure(
                f"the credential has {known.iterations} iterations,"
                f" {self._mechanism} needs {self._mechanism.min_iterations}"
            )
        nonce = client_first.nonce + self._server_nonce
        server_first = f"r={nonce},s={encode_base64(known.salt)},i={known.iterations}"
        starts = (
            client_final_start(client_first.gs2_header, nonce),
            client_final_start(client_first.gs2_header, client_first.nonce + nonce),
        )
        self._state = _Exchange(client_first, server_first, starts, known)
        return Challenge(server_first.encode("ascii"))

    def _take_client_first(self, message: ClientFirst) -> StepResult:
        if message.authorization_id not in (None, message.name):
            detail = "client-first: an authorization id other than the name"
            return Failure(detail, _OTHER_AUTHORIZATION_ID, Fault.IDENTITY)
        self._state = message
        return _credential_request(message)

    def _take_client_final(self, exchange: _Exchange, message: ClientFinal) -> StepResult:
        if isinstance(exchange.known, ScramCredential):
            return self._check(exchange, message, exchange.known)
        self._state = _Proof(exchange, message)
        return _credential_request(exchange.client_first)

    def _check(self, exchange: _Exchange, message: ClientFinal, credential: ScramCredential) -> StepResult:
        client_first = exchange.client_first
        auth_message = f"{client_first.bare},{exchange.server_first},{message.without_proof}".encode("ascii")
        proved = 0 if is_valid_proof(self._mechanism, credential.stored_key, auth_message, message.proof) else None
        for number, other in enumerate(credential.alternatives, 1):
            if is_valid_proof(self._mechanism, other.stored_key, auth_message, message.proof):
                credential, proved = other, number
        if proved is None:
            return Failure("client-final: the proof is wrong")
        signature = self._mechanism.hmac(credential.server_key, auth_message)
        server_final = f"v={encode_base64(signature)}".encode("ascii")
        return Success(server_final, client_first.name, client_first.extensions, proved)


def _credential_request(client_first: ClientFirst) -> CredentialRequest:
    # As java.lang.Boolean reads it: in any case, but without blanks around it.
    token = client_first.extensions.get(TOKENAUTH, "").lower() == "true"
    return CredentialRequest(client_first.name, token, client_first.extensions)


def _is_like(one: ScramCredential | ScramParameters, other: ScramCredential | ScramParameters) -> bool:
    """Say whether the same challenge is for both."""
    return (one.salt, one.iterations) == (other.salt, other.iterations)
