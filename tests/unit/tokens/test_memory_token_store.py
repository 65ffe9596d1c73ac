import pytest

from kafka_dt.tokens import StoreUnavailable, VersionedStore
from tests.support.tokens.memory_store import MemoryTokenDatabase, MemoryTokenStore
from tests.support.tokens.store_contract import HearingNode, VersionedStoreContract, new_token


class TestMemoryTokenStore(VersionedStoreContract):
    @pytest.fixture
    async def stores(self) -> tuple[VersionedStore, VersionedStore]:
        database = MemoryTokenDatabase()
        return MemoryTokenStore(database), MemoryTokenStore(database)

    async def test_what_could_not_be_read_is_gone_until_it_is_read_again(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        writer, reader = nodes
        assert isinstance(reader.store, MemoryTokenStore)
        token, other = new_token(), new_token()
        reader.store.can_read = lambda each: each == other
        await writer.store.create(token)
        await writer.store.create(other)
        await reader.store.catch_up()
        assert reader.heard.token(token.token_id) is None
        assert await reader.store.read(token.token_id) is None
        assert reader.heard.token(other.token_id) == other

        reader.store.can_read = lambda _: True
        assert reader.heard.token(token.token_id) is None
        await reader.store.reread_unreadable()

        assert reader.heard.token(token.token_id) == token
        assert reader.store.unreadable == set()

    async def test_nothing_is_asked_of_a_store_that_is_cut_off(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        store = nodes[0].store
        assert isinstance(store, MemoryTokenStore)
        store.connected = False
        for request in (
            store.load(),
            store.read("a"),
            store.create(new_token()),
            store.update(new_token(), 0),
            store.delete("a", 0),
            store.catch_up(),
        ):
            with pytest.raises(StoreUnavailable):
                await request
