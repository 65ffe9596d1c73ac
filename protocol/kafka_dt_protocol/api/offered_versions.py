"""What a gateway tells a client that asks ApiVersions: its own APIs, and those of the cluster behind it.

The gateway offers the APIs that it serves in its own versions, whatever the cluster has. Every other API keeps the
cluster's versions, even if the gateway does not know it: its bytes go through unchanged. Of answers that carry
addresses, and of requests that it reads for its audit events, it offers the versions whose layout it knows. Features
are the cluster's. An Envelope is neither forwarded nor
offered (`table.BETWEEN_BROKERS`).

Source: KIP-35, KIP-511, KIP-584 (features), KIP-590 (Envelope); KAFKA-17492;
org.apache.kafka.common.requests.ApiVersionsResponse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.api.table import BETWEEN_BROKERS, Api
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.rewriting.node_addresses import known_versions
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import entity_layout

_FIRST_WITH_FEATURES: Final = 3
_FIRST_WITH_MINIMUM_0: Final = 4
"""Older clients fail to read a feature that is supported from 0 on (KAFKA-17492)."""

MOST_KNOWN: Final = 1_000
"""Brokers' answers for which the bodies are kept; a few kilobytes each."""


def offered(api_version: int, upstream: Any, local: Iterable[Api], read: Iterable[Api] = ()) -> Any:
    """Make the answer to ApiVersions.

    Args:
        api_version: of the answer, 0-4.
        upstream: the cluster's answer, the entity of any version; from 3 on it tells features.
        local: the APIs that are served here.
        read: the APIs whose requests are forwarded and read.

    Returns:
        The response entity of that version; APIs are in the order of their keys, as a broker has them.

    Raises:
        LocalProtocolError: there is no such version.
    """
    response_types = APIS[ApiKey.API_VERSIONS].response
    if api_version not in response_types:
        raise LocalProtocolError(f"ApiVersions has no version {api_version}")
    entity_type = response_types[api_version]
    elements = _elements(entity_type)
    entry = elements["api_keys"]
    ranges = dict(_forwarded(upstream, {int(api.key): api for api in read})) | {
        int(api.key): (api.min_version, api.max_version) for api in local
    }
    return build(
        entity_type,
        error_code=ErrorCode.none,
        api_keys=tuple(
            entry(api_key=key, min_version=first, max_version=last) for key, (first, last) in sorted(ranges.items())
        ),
        **_features(api_version, elements, upstream),
    )


class OfferedVersions:
    """The bodies of ApiVersions answers, each made when it is first asked for; arguments are those of `offered`."""

    def __init__(self, upstream: Any, local: Iterable[Api], read: Iterable[Api] = ()) -> None:
        self._upstream = upstream
        self._local = tuple(local)
        self._read = tuple(read)
        self._bodies: dict[int, bytes] = {}

    def body(self, api_version: int) -> bytes:
        """Give the body of the answer in one of its versions; raises as `offered`."""
        body = self._bodies.get(api_version)
        if body is None:
            body = self._bodies[api_version] = encode(offered(api_version, self._upstream, self._local, self._read))
        return body


class OfferedByUpstream:
    """What is offered before each of several upstream brokers; to make one answer costs as much as a login.

    Arguments are those of `offered`.
    """

    def __init__(self, local: Iterable[Api], read: Iterable[Api] = ()) -> None:
        self._local = tuple(local)
        self._read = tuple(read)
        self._known: dict[int, tuple[Any, OfferedVersions]] = {}

    def of(self, upstream: Any) -> OfferedVersions:
        """Give what is offered before a broker.

        Args:
            upstream: its answer to ApiVersions. The same object gives the same; an equal one need not.
        """
        known = self._known.get(id(upstream))
        if known is None:
            if len(self._known) == MOST_KNOWN:
                self._known.clear()
            # The answer is kept with it, so that its id is not given to another.
            known = self._known[id(upstream)] = (upstream, OfferedVersions(upstream, self._local, self._read))
        return known[1]


def _forwarded(upstream: Any, read: Mapping[int, Api]) -> Iterator[tuple[int, tuple[int, int]]]:
    for api in upstream.api_keys:
        first, last = api.min_version, api.max_version
        known = known_versions(api.api_key)
        if known is not None:
            first, last = max(first, known.start), min(last, known.stop - 1)
        elif (ours := read.get(api.api_key)) is not None:
            first, last = max(first, ours.min_version), min(last, ours.max_version)
        if first <= last and api.api_key not in BETWEEN_BROKERS:
            yield int(api.api_key), (first, last)


def _features(api_version: int, elements: Mapping[str, Any], upstream: Any) -> dict[str, Any]:
    """Take the features over, in the entities of the answer's version; an answer before version 3 told none."""
    if api_version < _FIRST_WITH_FEATURES or upstream.__version__ < _FIRST_WITH_FEATURES:
        return {}
    supported = upstream.supported_features
    if api_version < _FIRST_WITH_MINIMUM_0:
        supported = [feature for feature in supported if feature.min_version > 0]
    return {
        "supported_features": _copies(elements["supported_features"], supported),
        "finalized_features_epoch": upstream.finalized_features_epoch,
        "finalized_features": _copies(elements["finalized_features"], upstream.finalized_features),
        "zk_migration_ready": upstream.zk_migration_ready,
    }


def _copies(entity_type: Any, entities: Iterable[Any]) -> tuple[Any, ...]:
    """Make the same entities of another version, whose fields are the same."""
    names = [field.name for field in fields(entity_type)]
    return tuple(entity_type(**{name: getattr(entity, name) for name in names}) for entity in entities)


def _elements(entity_type: Any) -> Mapping[str, Any]:
    layout = entity_layout(entity_type)
    return {field.name: field.entity for field in layout.plain + layout.tagged if field.entity is not None}
