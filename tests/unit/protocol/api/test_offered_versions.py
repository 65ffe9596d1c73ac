"""A gateway's ApiVersions: our versions of what is served here, the upstream's of what goes through."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_dt_protocol.api.offered_versions import MOST_KNOWN, OfferedByUpstream, OfferedVersions, offered
from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.rewriting.node_addresses import known_versions
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode

LOCAL = tuple(APIS[key] for key in (ApiKey.DESCRIBE_DELEGATION_TOKEN, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS))
RESPONSES = APIS[ApiKey.API_VERSIONS].response
VERSIONS = list(RESPONSES)
HEARTBEAT = 12
NOBODY_KNOWS = 999
ENVELOPE = 58


def entity(type_of: Any, field: str, *rows: dict[str, Any]) -> tuple[Any, ...]:
    """Make the elements of an array of the entity, whose types are in its module."""
    module = __import__(type_of.__module__, fromlist=["response"])
    element = {
        "api_keys": "ApiVersion",
        "supported_features": "SupportedFeatureKey",
        "finalized_features": "FinalizedFeatureKey",
    }[field]
    return tuple(getattr(module, element)(**row) for row in rows)


def answer(*ranges: tuple[int, int, int], version: int = 4, **features: Any) -> Any:
    """Make an upstream's answer."""
    kind = RESPONSES[version]
    rows = ({"api_key": key, "min_version": first, "max_version": last} for key, first, last in ranges)
    return build(kind, error_code=0, api_keys=entity(kind, "api_keys", *rows), **features)


def ranges(told: Any) -> list[tuple[int, int, int]]:
    return [(api.api_key, api.min_version, api.max_version) for api in told.api_keys]


def with_features() -> Any:
    kind = RESPONSES[4]
    return answer(
        (HEARTBEAT, 0, 4),
        supported_features=entity(
            kind,
            "supported_features",
            {"name": "kraft.version", "min_version": 0, "max_version": 1},
            {"name": "metadata.version", "min_version": 7, "max_version": 29},
        ),
        finalized_features_epoch=1234,
        finalized_features=entity(
            kind,
            "finalized_features",
            {"name": "metadata.version", "max_version_level": 29, "min_version_level": 29},
        ),
        zk_migration_ready=True,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_served_here_is_offered_in_our_versions_whatever_the_upstream_has(version: int) -> None:
    ours = sorted((int(api.key), api.min_version, api.max_version) for api in LOCAL)
    for upstream in (answer(), answer((18, 0, 99), (17, 1, 1), (41, 1, 2))):
        assert ranges(offered(version, upstream, LOCAL)) == ours


def test_what_goes_through_is_offered_in_the_upstreams_versions_even_if_nobody_knows_it() -> None:
    upstream = answer((NOBODY_KNOWS, 3, 7), (HEARTBEAT, 0, 30))
    assert ranges(offered(4, upstream, ())) == [(HEARTBEAT, 0, 30), (NOBODY_KNOWS, 3, 7)]


def test_versions_whose_addresses_could_not_be_rewritten_are_not_offered() -> None:
    known = known_versions(ApiKey.METADATA)
    assert known is not None
    last = known.stop - 1
    assert ranges(offered(4, answer((ApiKey.METADATA, 0, last + 5)), ())) == [(ApiKey.METADATA, known.start, last)]
    assert ranges(offered(4, answer((ApiKey.METADATA, 5, 6)), ())) == [(ApiKey.METADATA, 5, 6)]
    assert ranges(offered(4, answer((ApiKey.METADATA, last + 1, last + 5)), ())) == []


def test_of_requests_that_are_read_the_versions_are_offered_that_both_sides_know() -> None:
    read = [APIS[ApiKey.CREATE_ACLS]]
    told = offered(4, answer((ApiKey.CREATE_ACLS, 1, 9), (ApiKey.DELETE_ACLS, 1, 9)), [], read)
    assert ranges(told) == [(ApiKey.CREATE_ACLS, 1, 3), (ApiKey.DELETE_ACLS, 1, 9)]
    assert ranges(offered(4, answer((ApiKey.CREATE_ACLS, 7, 9)), [], read)) == []


def test_apis_are_in_the_order_of_their_keys() -> None:
    told = ranges(offered(4, answer((60, 0, 1), (HEARTBEAT, 0, 4)), LOCAL))
    assert told == sorted(told)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_encodes_and_says_the_same(version: int) -> None:
    upstream = with_features()
    told, _ = decode(RESPONSES[version], encode(offered(version, upstream, LOCAL)))
    assert told == offered(version, upstream, LOCAL)
    assert ranges(told) == ranges(offered(4, upstream, LOCAL))


def test_features_are_the_upstreams() -> None:
    upstream = with_features()
    told = offered(4, upstream, LOCAL)
    assert told.supported_features == upstream.supported_features
    assert told.finalized_features == upstream.finalized_features
    assert (told.finalized_features_epoch, told.zk_migration_ready) == (1234, True)


def test_older_clients_are_not_told_of_features_from_0_on() -> None:
    told = offered(3, with_features(), LOCAL)
    assert [feature.name for feature in told.supported_features] == ["metadata.version"]
    assert [feature.name for feature in told.finalized_features] == ["metadata.version"]
    assert told.finalized_features_epoch == 1234


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_upstream_that_tells_no_features_has_none(version: int) -> None:
    told = offered(4, answer((HEARTBEAT, 0, 4), version=version), LOCAL)
    assert (told.supported_features, told.finalized_features, told.finalized_features_epoch) == ((), (), -1)


def test_an_upstreams_answer_may_be_of_any_version() -> None:
    upstream = offered(3, with_features(), ())
    assert offered(3, upstream, ()) == upstream
    assert offered(4, upstream, ()).finalized_features_epoch == 1234


def test_there_is_no_other_version() -> None:
    with pytest.raises(LocalProtocolError):
        offered(5, answer(), LOCAL)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_is_made_once(version: int) -> None:
    versions = OfferedVersions(with_features(), LOCAL)
    assert versions.body(version) == encode(offered(version, with_features(), LOCAL))
    assert versions.body(version) is versions.body(version)


def test_connections_before_the_same_broker_share_its_bodies() -> None:
    by_upstream = OfferedByUpstream(LOCAL)
    one, other = with_features(), answer((HEARTBEAT, 0, 1))
    assert by_upstream.of(one) is by_upstream.of(one)
    assert by_upstream.of(other).body(0) == encode(offered(0, other, LOCAL))
    assert by_upstream.of(one).body(0) == encode(offered(0, one, LOCAL))


def test_the_bodies_of_answers_without_end_are_not_kept() -> None:
    by_upstream = OfferedByUpstream(LOCAL)
    for last in range(MOST_KNOWN + 2):
        assert by_upstream.of(answer((HEARTBEAT, 0, last))).body(0)
    assert len(by_upstream._known) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_an_envelope_is_for_brokers_and_not_offered(version: int) -> None:
    told = ranges(offered(version, answer((HEARTBEAT, 0, 4), (ENVELOPE, 0, 0)), ()))
    assert told == [(HEARTBEAT, 0, 4)]
