"""Answers that are sent on while they arrive, because there are records in them, and addresses behind those.

    answer = AddressesAtEnd(api_key, api_version, length, advertise)
    answer.receive_data(chunk)
    send(answer.take())

All that comes before the addresses goes through as it is, chunk by chunk and not copied where a chunk is all of it;
only the lengths in it are looked at. What comes behind is collected, and goes on in as many bytes (`fitting`), since
the length of the answer has been sent long before.

Limits: beside the chunk that was just received, `MAX_TAIL_BYTES` are held.

Source: KIP-951, KIP-932.
"""

from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses.fitting import fit
from kafka_dt_protocol.rewriting.node_addresses.nodes import Advertise
from kafka_dt_protocol.rewriting.node_addresses.places import place_of
from kafka_dt_protocol.rewriting.node_addresses.skipping import Walk

MAX_TAIL_BYTES: Final = 1024 * 1024
"""The endpoints of some ten thousand brokers."""


class AddressesAtEnd:
    """One answer with addresses behind its records.

    Args:
        api_key: of the request that it answers; `has_records` is true of it.
        api_version: of that request.
        length: bytes of the content of the answer's frame.
        advertise: tells how this client reaches a node.

    Raises:
        UnsupportedVersion: the layout of this version is not known; no client has been offered it.
        LocalProtocolError: the addresses of this API are not at the end.
    """

    def __init__(self, api_key: int, api_version: int, length: int, advertise: Advertise) -> None:
        self._place = place_of(api_key, api_version)
        if not self._place.at_the_end:
            raise LocalProtocolError(f"the answers of API key {api_key} do not end with addresses")
        self._advertise = advertise
        self._missing = length
        self._walk = Walk(self._place.head)
        self._skip = 0
        """So many bytes come before the next one that is looked at."""
        self._undecided = b""
        """The last bytes received, as far as they belong to a length that is not all there; they have been given on."""
        self._in_tail = False
        self._tail = bytearray()
        self._ready: list[bytes] = []

    def receive_data(self, data: bytes) -> None:
        """Take the next bytes of the answer's content.

        Args:
            data: none of the next answer.

        Raises:
            MalformedMessage: the bytes are no such answer. Its first bytes may have been taken by then; the connection
                is to be closed.
            LocalProtocolError: they are more than were announced, or what was advertised does not fit the wire.
        """
        if len(data) > self._missing:
            raise LocalProtocolError(f"{len(data)} bytes of an answer that has {self._missing} more")
        self._missing -= len(data)
        if self._in_tail:
            self._collect(data)
        elif self._skip > len(data):
            self._skip -= len(data)
            self._ready.append(data)
        else:
            self._look_at(data)
        self._expect_more()

    def take(self) -> bytes:
        """Give what may be sent on now; empty if there is nothing."""
        ready = self._ready
        if not ready:
            return b""
        self._ready = []
        return ready[0] if len(ready) == 1 else b"".join(ready)

    def _look_at(self, data: bytes) -> None:
        given_on = len(self._undecided)
        buffer = self._undecided + data if given_on else data
        offset = self._walk.skip(buffer, self._skip)
        self._undecided = b""
        self._skip = max(0, offset - len(buffer))
        if not self._walk.finished or self._skip:
            self._undecided = buffer[offset:]
            self._ready.append(data)
            return
        self._in_tail = True
        self._ready.append(data[: offset - given_on])
        self._collect(data[offset - given_on :])

    def _collect(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > MAX_TAIL_BYTES:
            raise MalformedMessage("more behind its records than there can be")

    def _expect_more(self) -> None:
        if self._skip > self._missing:
            raise MalformedMessage("a length beyond its end")
        if self._missing:
            return
        if not self._in_tail:
            raise MalformedMessage("it ends early")
        self._ready.append(fit(self._place, bytes(self._tail), self._advertise))
        self._tail.clear()
