"""What it takes to declare an API, and what follows from a table of declared APIs.

    declare(ApiKey.LIST_GROUPS, 0, 5, refuse=refusing_with(groups=()), note="There are none.")

A table is a value: `registry.APIS` is the one of this package, and everything that judges, reads or answers requests
takes it as an argument with that default.

Source: org.apache.kafka.common.protocol.ApiKeys; KIP-35, KIP-511.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.entities import EntityTypes, Load
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.login.authentication import Request
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import entity_layout
from kafka_dt_protocol.wire.times import NO_THROTTLE

if TYPE_CHECKING:
    from kafka_dt_protocol.wire.headers import RequestHeader

MAX_TAGGED_FIELDS: Final = 32
"""What a request without arrays may hold: none of Kafka's has as many tagged fields, and any client can send them."""

BETWEEN_BROKERS: Final = frozenset({58})
"""Envelope (KIP-590), by key. It carries a request of another principal: only brokers may send it, and what is in it
would go past a gateway."""

_FIRST_VERSION_WITH_THROTTLE_TIME: Final = 1

Refuse = Callable[[Any, Any, ErrorCode, str], Any]
"""Makes the answer that says nothing but an error, of the response's entity type, the request's entity (None for an
ApiVersions of unknown version), the error and the API's name."""


class AtGateway(Enum):
    """What a gateway does with the requests of an API."""

    FORWARDED = auto()
    """They go to the cluster behind it as they are."""
    SERVED = auto()
    """The gateway serves them itself, in the versions of the table."""
    SERVED_BY_TOKEN = auto()
    """The gateway serves those of clients that logged in with a token, and forwards the others."""
    NEVER = auto()
    """They close the connection."""


@dataclass(frozen=True, slots=True)
class Api:
    """One row of a table; `declare` makes it."""

    key: IntEnum
    """With Kafka's name of the API, such as CREATE_ACLS."""
    min_version: int
    max_version: int
    request: Mapping[int, type[Any]]
    """kio's entity type of the request, by version."""
    response: Mapping[int, type[Any]]
    """kio's entity type of the response, by version."""
    max_elements: int
    """How many array elements and tagged fields a request may hold: an absurd request must not cost other clients."""
    refuse: Refuse
    steps: Sequence[Request]
    """Which step of a login a request is, by version from `min_version` on; the last one holds for all later ones."""
    at_gateway: AtGateway
    audited_at_gateway: bool
    """Whether a gateway that writes audit events reads the requests that it forwards, and their answers."""
    note: str
    """What is worth knowing about it, for the manual."""

    def step(self, version: int) -> Request:
        """Say which step of a login a request is."""
        return self.steps[min(version - self.min_version, len(self.steps) - 1)]


def declare(
    key: IntEnum,
    min_version: int,
    max_version: int,
    *,
    refuse: Refuse,
    note: str,
    steps: Sequence[Request] = (Request.OTHER,),
    at_gateway: AtGateway = AtGateway.FORWARDED,
    audited_at_gateway: bool = False,
    max_elements: int = MAX_TAGGED_FIELDS,
    first_entity: int = 0,
    load_request: Load = load_request_schema,
    load_response: Load = load_response_schema,
) -> Api:
    """Declare an API; its fields are those of `Api`.

    From version `first_entity` on there are entities; earlier versions have the layout of that one. `load_request` and
    `load_response` give the entity types for a key and a version.
    """
    versions = range(min_version, max_version + 1)
    return Api(
        key=key,
        min_version=min_version,
        max_version=max_version,
        request=EntityTypes(key, versions, first_entity, load_request),
        response=EntityTypes(key, versions, first_entity, load_response),
        max_elements=max_elements,
        refuse=refuse,
        steps=steps,
        at_gateway=at_gateway,
        audited_at_gateway=audited_at_gateway,
        note=note,
    )


class ApiTable(Mapping[int, Api]):
    """APIs by key, one of them ApiVersions, and what follows from them; it never changes, and equals itself alone."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, apis: Iterable[Api]) -> None:
        self.rows: Final[Mapping[int, Api]] = MappingProxyType({api.key: api for api in apis})
        self.steps: Final[Mapping[tuple[int, int], Request]] = MappingProxyType(
            {(api.key, version): api.step(version) for api in self.rows.values() for version in api.request}
        )
        """Which step of a login a request is, by key and version."""
        self.at_gateway: Final[Mapping[int, AtGateway]] = MappingProxyType(
            dict.fromkeys(BETWEEN_BROKERS, AtGateway.NEVER) | {api.key: api.at_gateway for api in self.rows.values()}
        )
        """What a gateway does with requests, by key; it forwards those of other APIs."""
        self.served_by_gateway: Final = tuple(api for api in self.rows.values() if api.at_gateway is AtGateway.SERVED)
        self.audited_at_gateway: Final = tuple(api for api in self.rows.values() if api.audited_at_gateway)
        self.flexible: Final[dict[tuple[int, int], bool]] = {}
        """What `is_flexible` has found so far, by key and version."""
        self._bodies: dict[tuple[int, ErrorCode], bytes] = {}

    def __getitem__(self, key: int) -> Api:
        return self.rows[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def having(self, *apis: Api) -> ApiTable:
        """Give a table with these APIs beside the others, or in place of those that have their keys."""
        return ApiTable((dict(self.rows) | {int(api.key): api for api in apis}).values())

    def is_flexible(self, key: int, version: int) -> bool:
        """Say whether a request has a flexible version (KIP-482).

        Raises:
            KeyError: there is no such API, or not in this version.
        """
        flexible = self.flexible[key, version] = bool(self.rows[key].request[version].__flexible__)
        return flexible

    def response_type(self, header: RequestHeader) -> Any:
        """Give the entity type that answers a request."""
        return self.rows[header.api_key].response[header.api_version]

    def refusal(self, header: RequestHeader, body: Any, error: ErrorCode) -> Any:
        """Answer a request with an error and the values that a broker fills in beside it.

        Args:
            header: of the request; says API and version.
            body: the request's entity; None for an ApiVersions of unknown version, whose header says version 0.
            error: what is wrong.
        """
        api = self.rows[header.api_key]
        return api.refuse(api.response[header.api_version], body, error, api.key.name)

    def load_entities(self) -> None:
        """Import the entities of every version now, a tenth of a second, instead of each when it is first used.

        For servers: a request must not wait for files, nor fail because no more of them can be opened.
        """
        for api in self.rows.values():
            for entity_types in (api.request, api.response):
                for version in entity_types:
                    _ = entity_types[version]

    def api_versions(self, version: int, error: ErrorCode = ErrorCode.none) -> Any:
        """Make the answer to ApiVersions; it announces no features.

        Args:
            version: of the answer's layout. A request in a version that does not exist is answered in version 0.
            error: without one every API is listed; with UNSUPPORTED_VERSION only ApiVersions itself, so that the
                client can ask again in a version of ours; with any other nothing.

        Raises:
            LocalProtocolError: there is no such version.
        """
        own = next(api for api in self.rows.values() if Request.API_VERSIONS in api.steps)
        if version not in own.response:
            raise LocalProtocolError(f"ApiVersions has no version {version}")
        entity_type: Any = own.response[version]
        listed = {ErrorCode.none: self.rows.values(), ErrorCode.unsupported_version: (own,)}.get(error, ())
        fields = {field.name: field for field in entity_layout(entity_type).plain}
        entry: Any = fields["api_keys"].entity
        ranges = (entry(api_key=api.key, min_version=api.min_version, max_version=api.max_version) for api in listed)
        throttle = {"throttle_time": NO_THROTTLE} if version >= _FIRST_VERSION_WITH_THROTTLE_TIME else {}
        return entity_type(error_code=error, api_keys=tuple(ranges), **throttle)

    def body(self, api_version: int, error: ErrorCode = ErrorCode.none) -> bytes:
        """Give the body of an ApiVersions answer, encoded once; arguments and errors are those of `api_versions`."""
        body = self._bodies.get((api_version, error))
        if body is None:
            body = self._bodies[api_version, error] = encode(self.api_versions(api_version, error))
        return body
