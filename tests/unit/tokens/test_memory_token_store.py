import pytest

from kafka_dt.tokens import StoreUnavailable, TokenStore
from tests.support.memory_token_store import MemoryTokenDatabase, MemoryTokenStore
from tests.support.token_store_contract import HearingNode, TokenStoreContract, new_token


class TestMemoryTokenStore(TokenStoreContract):
    @pytest.fixture
    async def stores(self) -> tuple[TokenStore, TokenStore]:
        database = MemoryTokenDatabase()
        return MemoryTokenStore(database), MemoryTokenStore(database)

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
