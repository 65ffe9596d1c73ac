"""What has changed in an answer that lists all tokens, and that no more than that is decoded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt.client import RequestRefused
from kafka_dt.kraft.listing import PIECE, Listing
from kafka_dt.tokens import DelegationToken, Principal, Token
from kafka_dt_protocol import MalformedMessage
from kafka_dt_protocol.api.registry import ASKED, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.wire.decoding import MAX_ELEMENTS
from kafka_dt_protocol.wire.encoding import encode_varint
from kafka_dt_protocol.wire.headers import RequestHeader, encode_response
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster
from tests.support.tokens.store_contract import new_token

VERSION = 3
MANY = 8 * PIECE
HMAC = bytes(64)


def answer(tokens: Sequence[Token], error: ErrorCode = ErrorCode.none) -> bytes:
    """What a broker answers, after the correlation id."""
    return answer_of({each.token_id: DelegationToken(each, HMAC) for each in tokens}, error)


def answer_of(described: dict[str, DelegationToken], error: ErrorCode = ErrorCode.none) -> bytes:
    cluster = ScriptedCluster(describe_error=error, described=described)
    header = RequestHeader(ApiKey.DESCRIBE_DELEGATION_TOKEN, VERSION, 7, "test")
    response = ASKED[ApiKey.DESCRIBE_DELEGATION_TOKEN].response[VERSION]
    return encode_response(
        ApiKey.DESCRIBE_DELEGATION_TOKEN, VERSION, 7, build(response, **cluster._describe(header, None))
    )[4:]


def read(tokens: Sequence[Token], after: Listing | None = None) -> tuple[Listing, set[str]]:
    listing, fresh = (after or Listing()).read(answer(tokens), VERSION, GATEWAY)
    assert {token_id: stored.token for token_id, stored in listing.tokens.items()} == {
        each.token_id: each for each in tokens
    }
    return listing, set(fresh)


TOKENS = [new_token() for _ in range(MANY)]
FIRST, OF_ALL = read(TOKENS)


def test_a_first_answer_is_decoded_as_a_whole() -> None:
    assert {each.token_id for each in TOKENS} == OF_ALL


def test_what_is_kept_of_an_answer_shows_no_secret() -> None:
    secret = b"hmac-of-a-token"
    cluster_has = {TOKENS[0].token_id: DelegationToken(TOKENS[0], secret)}
    listing, _ = Listing().read(answer_of(cluster_has), VERSION, GATEWAY)
    assert listing.tokens[TOKENS[0].token_id].hmac == secret
    assert secret.decode() not in repr(listing)


def test_the_same_answer_gives_the_same_listing() -> None:
    assert read(TOKENS, FIRST) == (FIRST, set())
    empty, _ = read([])
    assert read([], empty) == (empty, set())


@pytest.mark.parametrize("place", [0, 1, PIECE - 1, PIECE, MANY // 2, MANY - 1])
def test_a_change_costs_the_decoding_of_its_neighbours_alone(place: int) -> None:
    changed = TOKENS[place].expiring_at(1)
    new = new_token()
    for tokens, wanted in (
        ([*TOKENS[:place], *TOKENS[place + 1 :]], set()),
        ([*TOKENS[:place], changed, *TOKENS[place + 1 :]], {changed.token_id}),
        ([*TOKENS[:place], new, *TOKENS[place:]], {new.token_id}),
    ):
        listing, fresh = read(tokens, FIRST)
        assert wanted <= fresh
        assert len(fresh) <= 2 * PIECE
        assert read(tokens, listing) == (listing, set())


def test_many_changes_at_once_cost_little_each() -> None:
    chance = random.Random(7)  # noqa: S311
    places = chance.sample(range(MANY), 2)
    tokens = [each.expiring_at(2) if place in places else each for place, each in enumerate(TOKENS)]
    listing, fresh = read(tokens, FIRST)
    assert len(fresh) <= 2 * PIECE * len(places)
    assert {TOKENS[place].token_id for place in places} <= fresh
    assert listing is not FIRST


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["gone", "changed", "new"]), st.floats(0, 1)), max_size=12), st.booleans())
def test_a_listing_has_what_the_answer_has_whatever_has_changed(
    changes: list[tuple[str, float]], in_another_order: bool
) -> None:
    tokens, listing = TOKENS[: 4 * PIECE], Listing()
    for kind, share in [("none", 0.0), *changes]:
        place = int(share * (len(tokens) - 1))
        part = {"gone": [], "changed": [replace(tokens[place], renewers=())], "new": [new_token(), tokens[place]]}
        tokens = [*tokens[:place], *part.get(kind, [tokens[place]]), *tokens[place + 1 :]]
        listing, _ = read(tokens, listing)
        assert len(listing.pieces) <= most_pieces(len(tokens))
        assert read(tokens, listing) == (listing, set())
    if in_another_order:
        listing, _ = read(tokens[::-1], listing)
        assert len(listing.pieces) <= most_pieces(len(tokens))


def test_the_pieces_stay_few_however_often_all_tokens_are_replaced() -> None:
    """Each piece costs each look something, also a look without news."""
    chance = random.Random(7)  # noqa: S311
    tokens, listing = TOKENS[: 4 * PIECE], FIRST
    for _ in range(4):
        for old in chance.sample(tokens, len(tokens)):
            tokens.remove(old)
            tokens.insert(chance.randrange(len(tokens)), new_token())
            if chance.random() < 0.25:
                listing, _ = read(tokens, listing)
    assert len(listing.pieces) <= most_pieces(len(tokens))


def most_pieces(tokens: int) -> int:
    """Two pieces that follow each other have more tokens than one may have."""
    return 2 * tokens // (PIECE + 1) + 1


def test_an_error_of_the_future_is_an_error() -> None:
    unknown = bytearray(answer([], ErrorCode.delegation_token_auth_disabled))
    unknown[1:3] = (20_000).to_bytes(2)
    with pytest.raises(RequestRefused):
        Listing().read(bytes(unknown), VERSION, GATEWAY)


def test_an_error_and_what_is_no_answer_are_told() -> None:
    with pytest.raises(RequestRefused):
        FIRST.read(answer([], ErrorCode.delegation_token_auth_disabled), VERSION, GATEWAY)
    whole = answer(TOKENS[:3])
    for length in range(len(answer(TOKENS[:2])) - 5):
        with pytest.raises(MalformedMessage):
            Listing().read(whole[:length], VERSION, GATEWAY)


def test_a_list_of_tokens_that_is_null_is_no_answer_without_tokens() -> None:
    null = bytearray(answer([]))
    assert null[3] == 1, "an array says one more than it has"
    null[3] = 0
    with pytest.raises(MalformedMessage):
        FIRST.read(bytes(null), VERSION, GATEWAY)


def test_a_token_may_have_as_many_renewers_as_a_broker_takes() -> None:
    """Any user of the cluster may create such a token; that must not keep a node from knowing the others."""
    bob = Principal.user("bob")
    renewed_by_bob = new_token(renewers=(bob,))
    entry = b"\x05User\x04bob\0"
    body = answer([renewed_by_bob, TOKENS[0]])
    assert body.count(b"\2" + entry) == 1
    count = MAX_ELEMENTS + 1
    body = body.replace(b"\2" + entry, encode_varint(count + 1) + entry * count)
    listing, _ = Listing().read(body, VERSION, GATEWAY)
    assert listing.tokens.keys() == {renewed_by_bob.token_id, TOKENS[0].token_id}
    assert listing.tokens[renewed_by_bob.token_id].token.renewers == (bob,) * count
