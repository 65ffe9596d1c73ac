"""SASL mechanisms as machines without I/O: PLAIN and SCRAM, both sides.

Read mechanism.py first: what every server side mechanism takes and gives. plain.py and scram_server.py are the server
sides, scram_client.py and `plain_message` the client sides; scram.py holds what both sides of SCRAM compute,
scram_messages.py and scram_attributes.py
its grammar, errors.py what a client can meet.

Source: RFC 4422, RFC 4616, RFC 5802, RFC 7677; KIP-48 for `tokenauth`.
"""

from protocol.sasl.errors import (
    MalformedScramMessage,
    SaslError,
    ScramError,
    ServerNonceMismatch,
    ServerRejected,
    ServerSignatureMismatch,
    UnacceptableIterations,
)
from protocol.sasl.mechanism import (
    NO_EXTENSIONS,
    Challenge,
    CredentialRequest,
    Failure,
    Outcome,
    ServerMechanism,
    Success,
)
from protocol.sasl.plain import PLAIN, PlainServer, plain_message
from protocol.sasl.scram import (
    ScramCredential,
    ScramKeys,
    ScramMechanism,
    derive_credential,
    derive_keys,
    keys_of,
)
from protocol.sasl.scram_client import MAX_ITERATIONS, ScramClient
from protocol.sasl.scram_server import TOKENAUTH, ScramServer

__all__ = [
    "MAX_ITERATIONS",
    "NO_EXTENSIONS",
    "PLAIN",
    "TOKENAUTH",
    "Challenge",
    "CredentialRequest",
    "Failure",
    "MalformedScramMessage",
    "Outcome",
    "PlainServer",
    "SaslError",
    "ScramClient",
    "ScramCredential",
    "ScramError",
    "ScramKeys",
    "ScramMechanism",
    "ScramServer",
    "ServerMechanism",
    "ServerNonceMismatch",
    "ServerRejected",
    "ServerSignatureMismatch",
    "Success",
    "UnacceptableIterations",
    "derive_credential",
    "derive_keys",
    "keys_of",
    "plain_message",
]
