"""What every TokenStore has to keep, as tests: subclass it in a test module and say how two nodes are made.

class TestMyStore(TokenStoreContract):
    @pytest.fixture
    async def stores(self): yield first_store, second_store     # on one new, empty place; load not called yet
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import secrets
from dataclasses import dataclass, field

import pytest

from kafka_dt.tokens import Principal, StoredToken, Token, TokenNotFound, TokenStore, VersionConflict


@dataclass
class Heard:
    """A listener that remembers the newest state of each token, and refuses to go back."""

    states: dict[str, StoredToken | None] = field(default_factory=dict)

    def __call__(self, token_id: str, stored: StoredToken | None) -> None:
        before = self.states.get(token_id)
        if before is not None and stored is not None and stored.revision:
            assert stored.revision >= before.revision, "an older state was reported after a newer one"
        self.states[token_id] = stored

    def token(self, token_id: str) -> Token | None:
        stored = self.states.get(token_id)
        return None if stored is None else stored.token


@dataclass
class HearingNode:
    store: TokenStore
    heard: Heard


def new_token(**changes: object) -> Token:
    """A token with a new id; everything else may be named."""
    token = Token(
        token_id=base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode(),
        owner=Principal.user("alice"),
        requester=Principal.user("admin"),
        renewers=(Principal.user("bob"), Principal.user("carol, *~")),
        issue_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_900_000,
        expiry_timestamp_ms=1_700_000_100_000,
    )
    return dataclasses.replace(token, **changes)  # type: ignore[arg-type]


class TokenStoreContract:
    @pytest.fixture
    async def stores(self) -> tuple[TokenStore, TokenStore]:
        raise NotImplementedError("the subclass makes the stores")

    @pytest.fixture
    async def nodes(self, stores: tuple[TokenStore, TokenStore]) -> tuple[HearingNode, HearingNode]:
        first, second = (HearingNode(store, Heard()) for store in stores)
        for node in (first, second):
            node.store.on_change(node.heard)
            await node.store.load()
        return first, second

    async def test_load_reports_what_was_stored_before(self, stores: tuple[TokenStore, TokenStore]) -> None:
        first, second = stores
        heard = Heard()
        first.on_change(Heard())
        second.on_change(heard)
        await first.load()
        tokens = [new_token() for _ in range(20)]
        for token in tokens:
            await first.create(token)

        await second.load()

        assert {token.token_id: heard.token(token.token_id) for token in tokens} == {
            token.token_id: token for token in tokens
        }

    async def test_every_field_survives_the_store(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token(
            owner=Principal("Group", "ops team:ä*~%20"), renewers=(Principal.user(""), Principal.user("")) * 2
        )
        await first.store.create(token)

        stored = await second.store.read(token.token_id)

        assert stored is not None
        assert stored.token == token

    async def test_a_change_has_been_reported_on_its_node_when_it_returns(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        node = nodes[0]
        token = new_token()

        created = await node.store.create(token)
        assert node.heard.token(token.token_id) == token == created.token

        renewed = token.expiring_at(token.expiry_timestamp_ms + 5)
        updated = await node.store.update(renewed, created.version)
        assert node.heard.token(token.token_id) == renewed == updated.token
        assert updated.version != created.version

        await node.store.delete(token.token_id, updated.version)
        assert node.heard.states[token.token_id] is None

    async def test_a_read_sees_what_another_node_has_acknowledged(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        for _ in range(20):
            token = new_token()
            created = await first.store.create(token)
            read = await second.store.read(token.token_id)
            assert read is not None
            assert (read.token, read.version) == (token, created.version)
            assert second.heard.token(token.token_id) == token

    async def test_a_read_of_nothing_reports_nothing(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        node = nodes[0]
        token_id = new_token().token_id
        assert await node.store.read(token_id) is None
        assert node.heard.token(token_id) is None

    async def test_catch_up_reports_what_another_node_has_acknowledged(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        first, second = nodes
        deleted, kept = new_token(), new_token()
        created = await first.store.create(deleted)
        await first.store.create(kept)
        await second.store.catch_up()
        assert second.heard.token(deleted.token_id) == deleted
        assert second.heard.token(kept.token_id) == kept

        await first.store.delete(deleted.token_id, created.version)
        await second.store.catch_up()
        assert second.heard.states[deleted.token_id] is None

    async def test_where_all_is_readable_nothing_is_read_again(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        await first.store.create(new_token())
        await second.store.catch_up()
        heard = dict(second.heard.states)

        await second.store.reread_unreadable()

        assert second.heard.states == heard

    async def test_a_create_does_not_overwrite(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token()
        await first.store.create(token)

        with pytest.raises(VersionConflict):
            await second.store.create(dataclasses.replace(token, owner=Principal.user("mallory")))

        assert _token(await second.store.read(token.token_id)) == token

    async def test_a_write_at_an_old_version_changes_nothing(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token()
        created = await first.store.create(token)
        renewed = token.expiring_at(token.expiry_timestamp_ms + 1)
        await first.store.update(renewed, created.version)

        with pytest.raises(VersionConflict):
            await second.store.update(token.expiring_at(0), created.version)
        with pytest.raises(VersionConflict):
            await second.store.delete(token.token_id, created.version)

        assert _token(await second.store.read(token.token_id)) == renewed

    async def test_a_deleted_token_stays_deleted(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token()
        created = await first.store.create(token)
        await second.store.read(token.token_id)
        await first.store.delete(token.token_id, created.version)

        with pytest.raises(TokenNotFound):
            await second.store.update(token.expiring_at(0), created.version)
        assert second.heard.states[token.token_id] is None
        with pytest.raises(TokenNotFound):
            await second.store.delete(token.token_id, created.version)

        assert await second.store.read(token.token_id) is None

    async def test_of_concurrent_writes_at_one_version_one_succeeds(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        token = new_token()
        created = await nodes[0].store.create(token)
        writes = [
            node.store.update(token.expiring_at(token.issue_timestamp_ms + number), created.version)
            for number, node in enumerate(nodes * 5)
        ]

        results = await asyncio.gather(*writes, return_exceptions=True)

        conflicts = [result for result in results if isinstance(result, VersionConflict)]
        assert len(conflicts) == len(writes) - 1


def _token(stored: StoredToken | None) -> Token | None:
    return None if stored is None else stored.token
