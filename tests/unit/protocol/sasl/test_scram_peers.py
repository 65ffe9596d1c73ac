"""SCRAM with scramp as the other side: an implementation that shares no line with ours."""

import base64

import pytest
import scramp
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.sasl import (
    Challenge,
    CredentialRequest,
    Failure,
    ScramClient,
    ScramMechanism,
    ScramServer,
    Success,
)
from tests.support.protocol.scram import CLIENT_NONCE, MECHANISMS, SALT, SERVER_NONCE, credential

# scramp prepares names and passwords by SASLprep, which leaves printable ASCII as it is.
printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1)


@settings(deadline=None, max_examples=25)
@given(mechanism=st.sampled_from(MECHANISMS), username=printable, password=printable)
def test_the_client_of_scramp_logs_in_at_our_server(mechanism: ScramMechanism, username: str, password: str) -> None:
    client = scramp.ScramClient([str(mechanism)], username, password)
    server = ScramServer(mechanism, SERVER_NONCE)
    assert server.step(client.get_client_first().encode()) == CredentialRequest(username)
    challenge = server.resume(credential(mechanism, password))
    assert isinstance(challenge, Challenge)
    client.set_server_first(challenge.message.decode())
    success = server.step(client.get_client_final().encode())
    assert isinstance(success, Success)
    assert success.message is not None
    client.set_server_final(success.message.decode())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_client_of_scramp_with_another_password_does_not(mechanism: ScramMechanism) -> None:
    client = scramp.ScramClient([str(mechanism)], "alice", "other")
    server = ScramServer(mechanism, SERVER_NONCE)
    server.step(client.get_client_first().encode())
    challenge = server.resume(credential(mechanism, "secret"))
    assert isinstance(challenge, Challenge)
    client.set_server_first(challenge.message.decode())
    assert isinstance(server.step(client.get_client_final().encode()), Failure)


@settings(deadline=None, max_examples=25)
@given(mechanism=st.sampled_from(MECHANISMS), username=printable, password=printable)
def test_our_client_logs_in_at_the_server_of_scramp(mechanism: ScramMechanism, username: str, password: str) -> None:
    peer = scramp.ScramMechanism(str(mechanism))
    users = {username: peer.make_auth_info(password, iteration_count=4096, salt=SALT)}
    server = peer.make_server(users.get)
    client = ScramClient(mechanism, username, password, CLIENT_NONCE)
    server.set_client_first(client.first().decode())
    server.set_client_final(client.challenge(server.get_server_first().encode()).decode())
    client.verify(server.get_server_final().encode())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_token_logs_in_with_a_client_that_cannot_send_extensions(mechanism: ScramMechanism) -> None:
    token_id, password = "MTIzNDU2Nzg5MDEyMzQ1Ng", base64.b64encode(bytes(range(64))).decode()
    client = scramp.ScramClient([str(mechanism)], token_id, password)
    server = ScramServer(mechanism, SERVER_NONCE)
    assert server.step(client.get_client_first().encode()) == CredentialRequest(token_id, token=False)
    challenge = server.resume(credential(mechanism, password))
    assert isinstance(challenge, Challenge)
    client.set_server_first(challenge.message.decode())
    assert isinstance(server.step(client.get_client_final().encode()), Success)


@pytest.mark.parametrize(
    ("client_first", "reason"),
    [
        ("n,,n=alice,r=fresh,tokenauth=true", "Malformed client_first_bare"),
        ("n,a=alice,n=alice,r=fresh", "authzid must be empty"),
    ],
)
def test_the_server_of_scramp_refuses_what_kafka_and_ours_take(client_first: str, reason: str) -> None:
    """Decision 0019 rests on this: where scramp takes both, ask again whose exchange it is."""
    peer = scramp.ScramMechanism("SCRAM-SHA-256")
    info = peer.make_auth_info("secret", iteration_count=4096, salt=SALT)
    with pytest.raises(scramp.ScramException, match=reason):
        peer.make_server(lambda _: info).set_client_first(client_first)
    server = ScramServer(ScramMechanism.SHA_256, SERVER_NONCE)
    assert isinstance(server.step(client_first.encode()), CredentialRequest)


def test_the_server_of_scramp_tells_an_unknown_user_from_a_known_one() -> None:
    server = scramp.ScramMechanism("SCRAM-SHA-256").make_server({}.get)
    with pytest.raises(scramp.ScramException, match="Unknown user"):
        server.set_client_first("n,,n=nobody,r=fresh")
