"""The ACLs of the cluster that a node decides by: those about users and about delegation tokens.

A node decides by itself whether a client may create a token for another user, unless the client asks on its own
connection, and which tokens of others a client sees. The ACLs are read with each proof (`reader.py`), over the same
connection. So a decision after a proof knows every change of them that was acknowledged before. The ACLs about other
resources are none of a node's business: it forwards what they are about.

Limits: no client can ask the cluster for its super users; a node has those of its own settings. An ACL whose words are
of a newer Kafka matches nothing here.

Source: KIP-140, KIP-290, KIP-373; kafka.server.AclApis, org.apache.kafka.metadata.authorizer.StandardAuthorizer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.identity.acls.binding import (
    PATTERN_TYPES,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.store import AclStoreUnavailable, Entries, StoredAcls
from kafka_dt.kraft.requests import acls_about, raise_if
from kafka_dt.tokens import InvalidPrincipal, Principal, StoreUnavailable
from kafka_dt_protocol.api.registry import ASKED, ApiKey
from kafka_dt_protocol.wire.decoding import decode, skip_tagged_fields

if TYPE_CHECKING:
    from kafka_dt.client.connection import Connection
    from kafka_dt.identity.acls.store import AclListener
    from kafka_dt.tokens import TokenSource

KINDS: Final = (ResourceType.USER, ResourceType.DELEGATION_TOKEN)
SHORT_BYTES: Final = 16_384
"""An answer as short as this is decoded at once, a longer one in a thread."""
_REASON: Final = "the upstream cluster keeps them"


class KnownAcls:
    """Reads the ACLs from a broker, and reports those that have changed; nothing before `follow`."""

    def __init__(self) -> None:
        self._listener: AclListener = lambda *_: None
        self._follows = False
        self._bodies: dict[ResourceType, bytes] = {}
        """The answers that were reported last."""
        self._patterns: dict[ResourceType, Mapping[ResourcePattern, Entries]] = {}

    def on_change(self, listener: AclListener) -> None:
        """Set the one listener."""
        self._listener = listener

    def follow(self) -> None:
        """Read from now on."""
        self._follows = True

    async def read(self, connection: Connection) -> None:
        """Take what a broker knows.

        Raises RequestRefused, MalformedMessage and what Connection.request raises.
        """
        if not self._follows:
            return
        for kind in KINDS:
            body = await acls_about(connection, kind)
            if body == self._bodies.get(kind):
                continue
            arguments = (body, connection.version(ApiKey.DESCRIBE_ACLS))
            patterns = (
                _patterns(*arguments) if len(body) <= SHORT_BYTES else await asyncio.to_thread(_patterns, *arguments)
            )
            self._report(kind, patterns)
            self._bodies[kind] = body

    def _report(self, kind: ResourceType, patterns: Mapping[ResourcePattern, Entries]) -> None:
        before = self._patterns.get(kind, {})
        for pattern in before.keys() - patterns.keys():
            self._listener(pattern, ())
        for pattern, entries in patterns.items():
            if before.get(pattern) != entries:
                self._listener(pattern, entries)
        self._patterns[kind] = patterns


class ClusterAcls:
    """Those ACLs as an AclStore. The gateway forwards the requests that list and change ACLs.

    Args:
        known: what is known of them.
        tokens: proves what the cluster has.
    """

    def __init__(self, known: KnownAcls, tokens: TokenSource) -> None:
        self._known = known
        self._tokens = tokens

    def on_change(self, listener: AclListener) -> None:
        """Set the one listener."""
        self._known.on_change(listener)

    async def load(self) -> None:
        """Report all, and keep reporting."""
        self._known.follow()
        await self.catch_up()

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported."""
        with _unavailable():
            await self._tokens.catch_up()

    async def until_current(self) -> None:
        """Catch up; where no broker can be asked, what is known will do until the tokens would be too stale as well."""
        try:
            await self.catch_up()
        except AclStoreUnavailable:
            if self._tokens.staleness_ms() > self._tokens.max_staleness_ms:
                raise

    def can_hold(self, name: str) -> bool:  # noqa: ARG002 - the interface's
        """Say no."""
        return False

    async def read(self, pattern: ResourcePattern) -> StoredAcls:  # noqa: ARG002 - the interface's
        """Give none: nothing can be changed here."""
        return StoredAcls((), None)

    async def write(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:  # noqa: ARG002 - the interface's
        """Refuse.

        Raises:
            AclStoreUnavailable: always.
        """
        raise AclStoreUnavailable(_REASON)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except StoreUnavailable as error:
        raise AclStoreUnavailable(str(error)) from error


def _patterns(body: bytes, version: int) -> Mapping[ResourcePattern, Entries]:
    """Read an answer, without the patterns and principals that no request of ours can meet."""
    begin = skip_tagged_fields(body, 0, max_elements=1)
    # The cluster is trusted with the length of its own list.
    kind: Any = ASKED[ApiKey.DESCRIBE_ACLS].response[version]
    answer, _ = decode(kind, body, begin, max_elements=len(body))
    raise_if(answer.error_code, "describe ACLs")
    found = {}
    for resource in answer.resources:
        pattern = ResourcePattern(
            ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type)
        )
        if pattern.pattern_type in PATTERN_TYPES:
            found[pattern] = tuple(_entries(resource.acls))
    return found


def _entries(described: Any) -> Iterator[AccessControlEntry]:
    for each in described:
        try:
            principal = Principal.parse(each.principal)
        except InvalidPrincipal:
            continue  # no client is this principal
        yield AccessControlEntry(
            principal, each.host, AclOperation(each.operation), AclPermissionType(each.permission_type)
        )
