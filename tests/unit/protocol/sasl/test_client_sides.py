"""What a client sends by DIGEST-MD5, OAUTHBEARER and GSSAPI, taken by the server sides of this package."""

from __future__ import annotations

import pytest

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    BearerAccepted,
    Challenge,
    CredentialRequest,
    DigestClient,
    DigestServer,
    Failure,
    GssRefused,
    MalformedDigestMessage,
    OAuthBearerServer,
    Success,
    VerdictRequest,
    bearer_message,
    choose_no_layer,
)

NAME, PASSWORD = 'to"ken\\ö', "s€cret"


def challenged() -> tuple[DigestServer, bytes]:
    server = DigestServer("server-nonce")
    challenge = server.step(b"")
    assert isinstance(challenge, Challenge)
    return server, challenge.message


@pytest.mark.parametrize("host", ["localhost", "::1", "node_1.example"])
def test_a_digest_client_proves_its_password_and_checks_the_servers(host: str) -> None:
    server, challenge = challenged()
    client = DigestClient(NAME, PASSWORD, "client-nonce", host)
    asked = server.step(client.respond(challenge))
    assert isinstance(asked, CredentialRequest)
    assert asked.name == NAME
    done = server.resume([PASSWORD])
    assert isinstance(done, Success)
    client.verify(done.message or b"")
    for proof in (b"rspauth=" + b"0" * 32, b"", b"rspauth"):
        with pytest.raises(MalformedDigestMessage):
            client.verify(proof)


def test_a_wrong_password_makes_another_digest() -> None:
    server, challenge = challenged()
    server.step(DigestClient(NAME, "wrong", "client-nonce", "localhost").respond(challenge))
    assert isinstance(server.resume([PASSWORD]), Failure)


@pytest.mark.parametrize("challenge", [b'realm="kafka"', b'nonce="n",qop="auth-conf"', b"!", b'nonce="a",nonce="b"'])
def test_a_challenge_that_offers_nothing_known_is_an_error(challenge: bytes) -> None:
    with pytest.raises(MalformedDigestMessage):
        DigestClient(NAME, PASSWORD, "client-nonce", "localhost").respond(challenge)


def test_a_digest_client_is_driven_in_order() -> None:
    with pytest.raises(LocalProtocolError):
        DigestClient(NAME, PASSWORD, "n,n", "localhost")
    with pytest.raises(LocalProtocolError):
        DigestClient(NAME, PASSWORD, "client-nonce", "localhost").verify(b"")


def test_a_bearer_message_carries_token_and_extensions() -> None:
    server = OAuthBearerServer()
    asked = server.step(bearer_message("ab.cd.ef", {"traceId": "1 2"}))
    assert asked == VerdictRequest("ab.cd.ef")
    done = server.resume(BearerAccepted("alice"))
    assert isinstance(done, Success)
    assert done.extensions == {"traceId": "1 2"}


@pytest.mark.parametrize(
    ("token", "extensions"),
    [("", {}), ("a b", {}), ("a\x01b", {}), ("ok", {"auth": "x"}), ("ok", {"a1": "x"}), ("ok", {"a": "\x01"})],
)
def test_what_would_break_the_message_is_not_sent(token: str, extensions: dict[str, str]) -> None:
    with pytest.raises(LocalProtocolError):
        bearer_message(token, extensions)


def test_a_client_of_gssapi_chooses_no_security_layer() -> None:
    assert choose_no_layer(b"\x07\x00\x10\x00") == b"\x01\x00\x00\x00"
    for offer in (b"\x06\x00\x10\x00", b"\x01", b""):
        with pytest.raises(GssRefused):
            choose_no_layer(offer)
