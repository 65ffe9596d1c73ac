"""The names under which the conversations of two servers are compared."""

import pytest

from tests.support.protocol.wire import Names


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (b"r=nonce,s=c2FsdA==,i=4096", "<r=,s=,i=>"),
        (b"v=c2lnbmF0dXJl", "<v=>"),
        (b"e=invalid-proof", "<e=invalid-proof>"),
    ],
)
def test_a_scram_message_is_shown_by_its_attributes(message: bytes, shown: str) -> None:
    assert Names().text(message) == shown


@pytest.mark.parametrize("hmac", [b"e=\xba\x18M", b"v=", b"r=a,,b", b"v=\n"])
def test_an_hmac_that_begins_like_a_scram_message_is_shown_as_bytes(hmac: bytes) -> None:
    assert Names().text(hmac) == repr(hmac)


def test_a_value_with_a_name_is_shown_by_it() -> None:
    names = Names()
    names.add(b"v=c2ln", "hmac-1")
    assert names.text(b"v=c2ln") == "hmac-1"
