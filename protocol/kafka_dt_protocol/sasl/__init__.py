"""SASL mechanisms as machines without I/O: the server sides of all, and what a client sends.

Read mechanism.py first: what every server side mechanism takes and gives. plain.py, scram_server.py, oauthbearer.py,
gssapi.py and digest_md5.py are the server sides. scram_client.py, `DigestClient`, `plain_message`, `bearer_message` and
`choose_no_layer` are of the client sides. scram.py holds what both sides of SCRAM compute, scram_messages.py its
grammar, errors.py what a client can meet.

Source: RFC 2831, RFC 4422, RFC 4616, RFC 4752, RFC 5802, RFC 7628, RFC 7677; KIP-48 for `tokenauth`, KIP-342 for
extensions.
"""

from kafka_dt_protocol.sasl.digest_md5 import DIGEST_MD5, DigestClient, DigestServer
from kafka_dt_protocol.sasl.errors import (
    GssRefused,
    MalformedDigestMessage,
    MalformedScramMessage,
    SaslError,
    ScramError,
    ServerNonceMismatch,
    ServerRejected,
    ServerSignatureMismatch,
    UnacceptableIterations,
)
from kafka_dt_protocol.sasl.gssapi import GSSAPI, GssapiServer, GssContext, choose_no_layer
from kafka_dt_protocol.sasl.mechanism import (
    NO_EXTENSIONS,
    Challenge,
    CredentialRequest,
    Failure,
    Fault,
    ServerMechanism,
    StepResult,
    Success,
    VerdictRequest,
)
from kafka_dt_protocol.sasl.oauthbearer import (
    ABORT,
    OAUTHBEARER,
    BearerAccepted,
    BearerRejected,
    BearerVerdict,
    OAuthBearerServer,
    bearer_message,
)
from kafka_dt_protocol.sasl.plain import PLAIN, PlainServer, plain_message
from kafka_dt_protocol.sasl.scram import (
    ScramCredential,
    ScramKeys,
    ScramMechanism,
    ScramParameters,
    derive_credential,
    derive_keys,
    keys_of,
    salt_password,
    salt_text,
)
from kafka_dt_protocol.sasl.scram_client import MAX_ITERATIONS, ScramClient
from kafka_dt_protocol.sasl.scram_server import TOKENAUTH, ScramServer

__all__ = [
    "ABORT",
    "DIGEST_MD5",
    "GSSAPI",
    "MAX_ITERATIONS",
    "NO_EXTENSIONS",
    "OAUTHBEARER",
    "PLAIN",
    "TOKENAUTH",
    "BearerAccepted",
    "BearerRejected",
    "BearerVerdict",
    "Challenge",
    "CredentialRequest",
    "DigestClient",
    "DigestServer",
    "Failure",
    "Fault",
    "GssContext",
    "GssRefused",
    "GssapiServer",
    "MalformedDigestMessage",
    "MalformedScramMessage",
    "OAuthBearerServer",
    "PlainServer",
    "SaslError",
    "ScramClient",
    "ScramCredential",
    "ScramError",
    "ScramKeys",
    "ScramMechanism",
    "ScramParameters",
    "ScramServer",
    "ServerMechanism",
    "ServerNonceMismatch",
    "ServerRejected",
    "ServerSignatureMismatch",
    "StepResult",
    "Success",
    "UnacceptableIterations",
    "VerdictRequest",
    "bearer_message",
    "choose_no_layer",
    "derive_credential",
    "derive_keys",
    "keys_of",
    "plain_message",
    "salt_password",
    "salt_text",
]
