import pytest

from kafka_dt.server.connection import _address


@pytest.mark.parametrize(
    ("peer", "text"),
    [
        (("192.0.2.1", 5), "192.0.2.1:5"),
        (("::ffff:192.0.2.1", 5, 0, 0), "192.0.2.1:5"),
        (("2001:db8::1", 5, 0, 0), "2001:db8::1:5"),
        (("::ffff:0:1", 5, 0, 0), "::ffff:0:1:5"),
        (None, "an unknown address"),
    ],
)
def test_an_ipv4_client_on_an_ipv6_socket_is_shown_as_what_it_is(peer: tuple[object, ...] | None, text: str) -> None:
    assert _address(peer) == text
