"""What the words of `kafka-dt acl` mean: resources, rules about them, and the ACLs of both.

Source: org.apache.kafka.tools.AclCommand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import click

from kafka_dt.client import Acl, AclFilter
from kafka_dt.identity.acls.binding import ANY_HOST, ANY_NAME, CLUSTER_NAME, SUPPORTED_OPERATIONS
from kafka_dt_protocol.api.acls import AclOperation, AclPermissionType, PatternType, ResourceType

_PRODUCES: Final = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_CONSUMES: Final = (AclOperation.READ, AclOperation.DESCRIBE)
_PRODUCES_IN_TRANSACTIONS: Final = (AclOperation.WRITE, AclOperation.DESCRIBE)


@dataclass(frozen=True, slots=True)
class Resources:
    """The patterns that a command line names: none means any."""

    patterns: tuple[tuple[ResourceType, str], ...]
    pattern_type: PatternType

    def filters(self) -> Sequence[AclFilter]:
        """Make a filter of each."""
        if not self.patterns:
            return (AclFilter(),)
        return [
            AclFilter(kind, name, PatternType.LITERAL if kind is ResourceType.CLUSTER else self.pattern_type)
            for kind, name in self.patterns
        ]

    def require_types_of_users(self) -> None:
        """Refuse a user without a type: an ACL on it would match no user.

        Raises:
            click.BadParameter: there is one.
        """
        for kind, name in self.patterns:
            user_type, colon, _ = name.partition(":")
            if kind is ResourceType.USER and name != ANY_NAME and not (user_type and colon):
                raise click.BadParameter(f"{name!r} has no type: write User:{name}", param_hint="'--user-principal'")


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may or may not do what: every combination."""

    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    denied_hosts: tuple[str, ...]
    operations: tuple[AclOperation, ...]
    producer: bool
    consumer: bool
    idempotent: bool

    def __post_init__(self) -> None:
        if (self.producer or self.consumer) and (self.denied or self.operations or self.denied_hosts):
            raise click.UsageError(
                "--producer and --consumer stand for operations that are allowed: give no --operation and no --deny-..."
            )
        if self.idempotent and not self.producer:
            raise click.UsageError("--idempotent needs --producer.")
        for hosts, principals, word in (
            (self.allowed_hosts, self.allowed, "allow"),
            (self.denied_hosts, self.denied, "deny"),
        ):
            if hosts and not principals:
                raise click.UsageError(f"--{word}-host needs --{word}-principal.")

    def acls(self, resources: Resources) -> list[Acl]:
        """Make the ACLs of these rules on resources.

        Raises:
            click.UsageError: a resource has no such operation, or there is no resource.
        """
        if not resources.patterns:
            raise click.UsageError(
                "Name a resource: --topic, --group, --transactional-id, --delegation-token, --user-principal or "
                "--cluster."
            )
        if resources.pattern_type not in {PatternType.LITERAL, PatternType.PREFIXED}:
            raise click.UsageError("An ACL has --resource-pattern-type literal or prefixed; any and match find ACLs.")
        acls = [
            Acl(
                kind,
                name,
                PatternType.LITERAL if kind is ResourceType.CLUSTER else resources.pattern_type,
                principal,
                host,
                operation,
                permission,
            )
            for kind, name in self._patterns(resources)
            for operation in self._operations(kind)
            for principal, host, permission in self._principals()
        ]
        return sorted(dict.fromkeys(acls))

    def _patterns(self, resources: Resources) -> Iterator[tuple[ResourceType, str]]:
        yield from resources.patterns
        if self.idempotent and (ResourceType.CLUSTER, CLUSTER_NAME) not in resources.patterns:
            yield ResourceType.CLUSTER, CLUSTER_NAME

    def _operations(self, kind: ResourceType) -> Sequence[AclOperation]:
        if not (self.producer or self.consumer):
            operations = self.operations or (AclOperation.ALL,)
            for operation in operations:
                if operation is not AclOperation.ALL and operation not in SUPPORTED_OPERATIONS[kind]:
                    known = ", ".join(each.text for each in (*SUPPORTED_OPERATIONS[kind], AclOperation.ALL))
                    raise click.UsageError(f"{kind.text} has no operation {operation.text}; it has {known}.")
            return operations
        needed: dict[AclOperation, None] = {}
        if self.producer:
            needed |= dict.fromkeys(
                {
                    ResourceType.TOPIC: _PRODUCES,
                    ResourceType.TRANSACTIONAL_ID: _PRODUCES_IN_TRANSACTIONS,
                    ResourceType.CLUSTER: (AclOperation.IDEMPOTENT_WRITE,) if self.idempotent else (),
                }.get(kind, ())
            )
        if self.consumer:
            needed |= dict.fromkeys(
                {ResourceType.TOPIC: _CONSUMES, ResourceType.GROUP: (AclOperation.READ,)}.get(kind, ())
            )
        return tuple(needed)

    def _principals(self) -> Iterator[tuple[str, str, AclPermissionType]]:
        for principal, host in product(self.allowed, self.allowed_hosts or (ANY_HOST,)):
            yield principal, host, AclPermissionType.ALLOW
        for principal, host in product(self.denied, self.denied_hosts or (ANY_HOST,)):
            yield principal, host, AclPermissionType.DENY

    @property
    def empty(self) -> bool:
        """Whether no principal is named."""
        return not (self.allowed or self.denied)
