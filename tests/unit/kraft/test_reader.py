"""One broker at a time: which answers are used, and what is asked for a proof."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.reader import SHORT_BYTES, ClusterReader
from kafka_dt.tokens import DelegationToken, StoredToken, StoreUnavailable, TokenCache
from kafka_dt_protocol.api.registry import ASKED, ApiKey, AskedApi
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.frames import frame
from kafka_dt_protocol.wire.headers import RequestHeader
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster
from tests.support.tokens.store_contract import new_token

pytestmark = pytest.mark.usefixtures("steady_time")

HMAC = bytes(64)
PROOF_S = 20.0
SHORT_PROOF_S = 0.3
"""Where a proof is to fail."""


def loop_s() -> float:
    return asyncio.get_running_loop().time()


class Counting(Knowledge):
    """Counts the answers that were taken."""

    taken = 0

    async def take(
        self, tokens: Mapping[str, StoredToken], fresh: Collection[str], asked_s: float | None = None
    ) -> None:
        self.taken += 1
        await super().take(tokens, fresh, asked_s)


@pytest.fixture
async def knowledge(cache: TokenCache) -> Counting:
    made = Counting(cache, loop_s)
    made.on_change(cache.apply)
    return made


@pytest.fixture
async def reader(cluster: ScriptedCluster, knowledge: Counting) -> AsyncIterator[ClusterReader]:
    made = ClusterReader(cluster.session(), knowledge, GATEWAY, clocks=lambda: (loop_s(),), proof_s=PROOF_S)
    yield made
    await made.close()


@pytest.fixture
async def impatient(cluster: ScriptedCluster, knowledge: Counting) -> AsyncIterator[ClusterReader]:
    made = ClusterReader(cluster.session(), knowledge, GATEWAY, clocks=lambda: (loop_s(),), proof_s=SHORT_PROOF_S)
    yield made
    await made.close()


def described(cluster: ScriptedCluster, **changes: object) -> DelegationToken:
    held = DelegationToken(new_token(**changes), HMAC)
    cluster.described[held.token.token_id] = held
    return held


async def test_a_proof_describes_when_the_image_has_moved_past_the_watermark(
    cluster: ScriptedCluster, reader: ClusterReader, cache: TokenCache
) -> None:
    # The first is asked for when the connection is made.
    cluster.watermark, cluster.offsets = 11, [8, 8, 10, 10, 11]
    made = described(cluster)
    before = loop_s()
    assert (before,) <= await reader.prove() <= (loop_s(),)
    assert cluster.offsets == []
    assert cluster.asked == [
        ApiKey.API_VERSIONS,
        AskedApi.DESCRIBE_QUORUM,
        *[ApiKey.API_VERSIONS] * 4,
        AskedApi.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ]
    assert cache.get(made.token.token_id) == made


async def test_a_look_over_a_new_connection_asks_nothing_before_there_is_a_proof(
    cluster: ScriptedCluster, reader: ClusterReader, cache: TokenCache
) -> None:
    assert not reader.connected
    assert not await reader.look()
    assert ApiKey.DESCRIBE_DELEGATION_TOKEN not in cluster.asked
    await reader.prove()
    assert reader.connected
    made = described(cluster)
    assert await reader.look()
    assert cache.get(made.token.token_id) == made

    cluster.server.drop_connections()
    while reader.connected:
        with pytest.raises(StoreUnavailable):
            await reader.look()
    assert not await reader.look()


async def test_the_gateway_is_not_shown_among_the_renewers(
    cluster: ScriptedCluster, reader: ClusterReader, cache: TokenCache
) -> None:
    made = described(cluster)
    token_id = made.token.token_id
    renewers = (GATEWAY, *made.token.renewers, GATEWAY)
    cluster.described[token_id] = replace(made, token=replace(made.token, renewers=renewers))
    await reader.prove()
    assert cache.get(token_id) == made


async def test_an_answer_like_the_one_before_is_not_taken(
    cluster: ScriptedCluster, reader: ClusterReader, knowledge: Counting
) -> None:
    made = described(cluster)
    await reader.prove()
    assert await reader.look()
    assert knowledge.taken == 1
    described(cluster)
    assert await reader.look()
    assert knowledge.taken == 2
    knowledge.changed(made.token.token_id, None)
    assert await reader.look()
    assert knowledge.taken == 3


async def test_the_same_answer_brings_back_what_a_change_has_hidden_once_it_is_proved_to_be_newer(
    cluster: ScriptedCluster, reader: ClusterReader, knowledge: Counting, cache: TokenCache
) -> None:
    """A renewal of this worker was followed by another node's, which a look had shown already."""
    made = described(cluster)
    await reader.prove()
    token_id = made.token.token_id
    knowledge.changed(token_id, StoredToken(made.token.expiring_at(1), hmac=HMAC))
    await reader.look()
    assert cache.get(token_id) != made
    await asyncio.sleep(0.001)
    await reader.prove()
    assert cache.get(token_id) == made


async def test_a_long_answer_is_decoded_as_a_short_one(
    cluster: ScriptedCluster, reader: ClusterReader, cache: TokenCache
) -> None:
    made = [described(cluster) for _ in range(SHORT_BYTES // 200)]
    await reader.prove()
    assert sorted(cache.copied_ids()) == sorted(each.token.token_id for each in made)


async def test_a_controller_that_was_deposed_proves_nothing(cluster: ScriptedCluster, knowledge: Counting) -> None:
    cluster.epochs = [1, 2, 2]
    seconds = count()
    reader = ClusterReader(cluster.session(), knowledge, GATEWAY, clocks=lambda: (next(seconds),), proof_s=PROOF_S)
    assert await reader.prove() == (1,)
    assert cluster.asked.count(AskedApi.DESCRIBE_QUORUM) == 4
    await reader.close()


async def test_a_deposed_controller_that_answers_twice_proves_nothing_though_the_broker_hears_of_its_successor(
    cluster: ScriptedCluster, impatient: ClusterReader
) -> None:
    cluster.deposed = True
    with pytest.raises(StoreUnavailable, match="has not caught up with the controllers in time"):
        await impatient.prove()
    assert ApiKey.DESCRIBE_DELEGATION_TOKEN not in cluster.asked


async def test_a_controller_that_was_just_elected_is_asked_again_until_it_knows_the_watermark(
    cluster: ScriptedCluster, reader: ClusterReader, cache: TokenCache
) -> None:
    """A broker that is far behind, at offset 3 of 11, proves nothing meanwhile."""
    made = described(cluster)
    cluster.elected, cluster.watermark, cluster.offsets = 1, 11, [3, 4, 5, 10, 11]
    await reader.prove()
    assert cluster.offsets == []
    assert cache.get(made.token.token_id) == made


async def test_a_broker_that_hears_of_no_records_is_left(cluster: ScriptedCluster, impatient: ClusterReader) -> None:
    cluster.offsets = [10] * 1_000
    with pytest.raises(StoreUnavailable, match="has not caught up with the controllers in time"):
        await impatient.prove()
    assert not impatient.connected
    assert ApiKey.DESCRIBE_DELEGATION_TOKEN not in cluster.asked
    cluster.offsets.clear()
    await impatient.prove()
    assert cluster.server.connections == 2


async def test_where_every_broker_is_behind_for_longer_than_a_proof_may_take_the_next_one_may_take_longer(
    cluster: ScriptedCluster, impatient: ClusterReader, cache: TokenCache
) -> None:
    def offset(behind_s: float) -> int:
        return int((loop_s() - behind_s) * 1_000)

    features, quorum = cluster.server.features, cluster.server.scripts[AskedApi.DESCRIBE_QUORUM]

    def tell_watermark(header: RequestHeader, request: object) -> object:
        cluster.watermark = offset(0)
        return quorum(header, request)

    cluster.server.scripts[AskedApi.DESCRIBE_QUORUM] = tell_watermark
    cluster.server.features = lambda: features() | {"finalized_features_epoch": offset(1.5 * SHORT_PROOF_S)}
    made = described(cluster)
    with pytest.raises(StoreUnavailable, match="has not caught up with the controllers"):
        await impatient.prove()
    for _ in range(3):
        with suppress(StoreUnavailable):
            await impatient.prove()
    assert cache.get(made.token.token_id) == made


async def test_a_broker_without_metadata_log_proves_nothing(cluster: ScriptedCluster, reader: ClusterReader) -> None:
    cluster.server.features = dict
    with pytest.raises(StoreUnavailable, match="the offset of its metadata"):
        await reader.prove()


@pytest.mark.parametrize("where", ["quorum_error", "describe_error"])
async def test_a_refusal_is_an_outage(cluster: ScriptedCluster, reader: ClusterReader, where: str) -> None:
    setattr(cluster, where, ErrorCode.cluster_authorization_failed)
    with pytest.raises(StoreUnavailable, match=r"cluster.authorization.failed"):
        await reader.prove()
    assert not reader.connected


@pytest.mark.parametrize("topics", [0, 1])
async def test_an_answer_without_the_metadata_log_is_an_outage_and_the_broker_is_left(
    cluster: ScriptedCluster, reader: ClusterReader, topics: int
) -> None:
    def without(header: RequestHeader, _: object) -> dict[str, object]:
        topic = element_type(ASKED[AskedApi.DESCRIBE_QUORUM].response[header.api_version], "topics")
        told = (topic(topic_name="__cluster_metadata", partitions=()),) if topics else ()
        return {"error_code": ErrorCode.none, "error_message": None, "topics": told, "nodes": ()}

    cluster.server.scripts[AskedApi.DESCRIBE_QUORUM] = without
    with pytest.raises(StoreUnavailable, match="does not describe the metadata log"):
        await reader.prove()
    assert not reader.connected


@pytest.mark.parametrize("length", [3, 200, SHORT_BYTES + 1])
async def test_a_description_of_tokens_that_cannot_be_read_is_an_outage_and_changes_nothing(
    cluster: ScriptedCluster, reader: ClusterReader, cache: TokenCache, length: int
) -> None:
    made = described(cluster)
    await reader.prove()
    cluster.server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda header, _: frame(
        header.correlation_id.to_bytes(4) + b"\xff" * length
    )
    with pytest.raises(StoreUnavailable):
        await reader.look()
    assert not reader.connected
    assert cache.get(made.token.token_id) == made


async def test_a_reader_that_is_closed_connects_no_more(cluster: ScriptedCluster, reader: ClusterReader) -> None:
    await reader.close()
    with pytest.raises(StoreUnavailable):
        await reader.prove()
    assert cluster.server.connections == 0
