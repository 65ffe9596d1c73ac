"""Read the answers that list all tokens, and decode only what the answer before did not have.

    listing, fresh = Listing().read(body, version, gateway)
    listing.tokens        # all of them
    fresh                 # the ids of those that were decoded: what is new or different is among them
    listing, fresh = listing.read(...)

An answer about 100,000 tokens has 15 MB, and few of the tokens have changed since the last one. A broker lists them in
the order of a hash table: the others follow each other as before, in other places. So the answer is kept in pieces, the
bytes of some tokens each. A piece that comes next in the new answer is the same tokens. Where none does, tokens are
decoded one by one until a later piece begins. They become pieces, too, and small pieces that follow each other become
one. Two of them have more than `PIECE` tokens together, so there are at most two for each `PIECE` tokens, however long
a node runs.

Limit: when the broker's table has grown, and perhaps at another broker, the order is another one, and all are decoded.

Source: KIP-48 (DescribeDelegationToken); java.util.concurrent.ConcurrentHashMap.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.kraft.requests import raise_if, stored_token
from kafka_dt.tokens import Principal, StoredToken
from kafka_dt_protocol import MalformedMessage
from kafka_dt_protocol.api.registry import ASKED, ApiKey
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.decoding import decode, read_varint, skip_tagged_fields

PIECE: Final = 64
"""How many tokens are kept together: about as many are decoded for one that has changed."""
_ERROR: Final = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that follow each other."""

    content: bytes = field(repr=False)
    """Has their HMACs."""
    tokens: Mapping[str, StoredToken]

    def joined(self, later: Piece) -> Piece:
        """Return it with the piece that comes next in the answer."""
        return Piece(self.content + later.content, {**self.tokens, **later.tokens})


@dataclass(frozen=True, slots=True)
class Listing:
    """What one answer has listed; a new one nothing."""

    pieces: Sequence[Piece] = ()
    tokens: Mapping[str, StoredToken] = field(default_factory=dict)
    """All of them, by their ids."""

    def read(self, body: bytes, version: int, gateway: Principal) -> tuple[Listing, Collection[str]]:
        """Read the answer after this one.

        Args:
            body: its bytes after the correlation id.
            version: of the request.
            gateway: the gateway's principal, which is left out of the renewers.

        Returns:
            What it lists, and the ids of the tokens that were decoded. It is this object if nothing differs.

        Raises:
            MalformedMessage: the bytes are no such answer.
            RequestRefused: it is an error.
        """
        answer = _Answer(body, version, gateway)
        fresh = answer.read(self.pieces)
        if len(answer.pieces) == len(self.pieces) and not fresh:
            return self, ()
        tokens = {token_id: stored for piece in answer.pieces for token_id, stored in piece.tokens.items()}
        return Listing(answer.pieces, tokens), fresh


class _Answer:
    """An answer as far as it has been read."""

    def __init__(self, body: bytes, version: int, gateway: Principal) -> None:
        self.pieces: Final[list[Piece]] = []
        self._body = body
        self._entry: Any = element_type(ASKED[ApiKey.DESCRIBE_DELEGATION_TOKEN].response[version], "tokens")
        self._gateway = gateway
        self._decoded: dict[str, StoredToken] = {}
        """What comes after the last piece."""
        try:
            offset = skip_tagged_fields(body, 0, max_elements=1)
            raise_if(_error(_ERROR.unpack_from(body, offset)[0]), "describe")
            count, self._begun = read_varint(body, offset + _ERROR.size)
        except (IndexError, struct.error):
            raise MalformedMessage("it ends early") from None
        if count == 0:
            raise MalformedMessage("its list of tokens is null")
        self._offset = self._begun
        self._left = count - 1  # an array says one more than it has

    def read(self, known: Sequence[Piece]) -> Collection[str]:
        """Read it to its end; returns the ids of the tokens that were decoded."""
        places = {next(iter(piece.tokens)): place for place, piece in enumerate(known)}
        fresh: list[str] = []
        place = 0
        while self._left > 0:
            if place < len(known) and self._body.startswith(known[place].content, self._offset):
                self._take(known[place])
                place += 1
                continue
            stored, end = self._token()
            later = places.get(stored.token.token_id, -1)
            if later > place and self._body.startswith(known[later].content, self._offset):
                place = later
                continue
            fresh.append(stored.token.token_id)
            self._decoded[stored.token.token_id] = stored
            self._offset = end
            self._left -= 1
            if len(self._decoded) == PIECE:
                self._cut()
        self._cut()
        return fresh

    def _take(self, piece: Piece) -> None:
        self._cut()
        self._add(piece)
        self._begun = self._offset = self._offset + len(piece.content)
        self._left -= len(piece.tokens)

    def _cut(self) -> None:
        """Make a piece of what has been decoded."""
        if self._decoded:
            self._add(Piece(self._body[self._begun : self._offset], self._decoded))
            self._begun, self._decoded = self._offset, {}

    def _add(self, piece: Piece) -> None:
        if self.pieces and len(self.pieces[-1].tokens) + len(piece.tokens) <= PIECE:
            self.pieces[-1] = self.pieces[-1].joined(piece)
        else:
            self.pieces.append(piece)

    def _token(self) -> tuple[StoredToken, int]:
        # The cluster limits how many renewers a token has, by the bytes of a record. Otherwise the token of one user,
        # with more of them than the decoder takes by default, would keep nodes from knowing any token.
        entry, end = decode(self._entry, self._body, self._offset, max_elements=len(self._body))
        return stored_token(entry, self._gateway), end


def _error(code: int) -> ErrorCode:
    return next((each for each in ErrorCode if each == code), ErrorCode.unknown_server_error)
