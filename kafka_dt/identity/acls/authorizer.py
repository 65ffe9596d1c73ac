"""Decide what a principal may do: Kafka's AclAuthorizer over the ACLs in memory, and rules about tokens of others.

Without an authorizer class everyone may do everything, as in Kafka. With it: a super user may do everything. A resource
that no ACL is about may be used as `allow.everyone.if.no.acl.found` says. Else a matching Deny refuses, then a matching
Allow permits, by the operation itself, by ALL, or by one that implies it; what no entry allows is refused.

A refusal is logged with principal, address, operation and resource. Questions that only select what is shown are not.

Source: KIP-11, KIP-290, KIP-373; kafka.security.authorizer.AclAuthorizer,
kafka.server.DelegationTokenManager.filterToken, kafka.server.AuthHelper.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kafka_dt.config import ConfigError, Settings
from kafka_dt.identity.acls.binding import (
    CLUSTER_NAME,
    IMPLIED_BY,
    SUPPORTED_OPERATIONS,
    AclOperation,
    AclPermissionType,
    ResourceType,
)
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.store import Entries
from kafka_dt.log import event
from kafka_dt.tokens import InvalidPrincipal, Principal, Token

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and from where."""

    principal: Principal
    host: str
    """The address of the client as ACLs have it."""


class Authorizer:
    """Answers whether a principal may do something."""

    def __init__(
        self,
        acls: AclCache,
        *,
        enabled: bool,
        super_users: frozenset[Principal],
        allow_everyone: bool,
        super_users_revoke_any: bool,
        until_current: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._acls = acls
        self._until_current = until_current
        self.enabled = enabled
        self._super_users = super_users
        self._allow_everyone = allow_everyone
        self._super_users_revoke_any = super_users_revoke_any

    @classmethod
    def from_settings(
        cls, settings: Settings, acls: AclCache, until_current: Callable[[], Awaitable[None]] | None = None
    ) -> Authorizer:
        """Make the authorizer of a node.

        Args:
            settings: of the node.
            acls: what the node knows of the ACLs.
            until_current: returns when that is new enough to decide by; None if it always is.

        Raises:
            ConfigError: a super user is no principal.
        """
        return cls(
            acls,
            enabled=bool(settings.authorizer_class_name),
            super_users=_super_users(settings.super_users),
            allow_everyone=settings.allow_everyone_if_no_acl_found,
            super_users_revoke_any=settings.super_users_revoke_any,
            until_current=until_current,
        )

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Check new settings of the node, and return what takes them over.

        Raises:
            ConfigError: a super user is no principal.
        """
        super_users = _super_users(settings.super_users)

        def take_over() -> None:
            self._super_users = super_users
            self._allow_everyone = settings.allow_everyone_if_no_acl_found
            self._super_users_revoke_any = settings.super_users_revoke_any

        return take_over

    def allows(self, caller: Caller, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Say whether the caller may do something to a resource; log a refusal."""
        allowed = self.check(caller, operation, resource_type)(name)
        if not allowed:
            _LOG.info(
                "Denied: %r from %s may not %s %s %r",
                str(caller.principal),
                caller.host,
                operation.name,
                resource_type.text,
                name,
                extra=event("authorize", failed=True, host=caller.host, user=caller.principal.name),
            )
        return allowed

    def allows_cluster(self, caller: Caller, operation: AclOperation) -> bool:
        """Say whether the caller may do something to the cluster."""
        return self.allows(caller, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def check(self, caller: Caller, operation: AclOperation, resource_type: ResourceType) -> Callable[[str], bool]:
        """Give the answer for every resource of a type, by its name; quick for very many names.

        The entries of each pattern are looked at once, however many names fall under it.
        """
        if not self.enabled or caller.principal in self._super_users:
            return lambda _: True
        readings = _Readings(caller, operation)
        of_all = self._acls.of_all(resource_type)
        usual = readings.of(of_all).allows if of_all else self._allow_everyone

        def decide(name: str) -> bool:
            of_name = self._acls.of_name(resource_type, name)
            if not of_name:
                return usual
            said = [readings.of(entries) for entries in (of_all, *of_name)]
            return any(each.allowed for each in said) and not any(each.denied for each in said)

        return decide

    def authorized_operations(self, caller: Caller, resource_type: ResourceType, name: str) -> int:
        """Give all that the caller may do to a resource, as the wire has it: a bit for the code of each operation."""
        allowed = (
            operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.check(caller, operation, resource_type)(name)
        )
        return sum(1 << operation for operation in allowed)

    async def may_create_for(self, caller: Caller, owner: Principal) -> bool:
        """Say whether a token for an owner may be made: by the owner, or with CREATE_TOKENS on the User.

        Raises:
            AclStoreUnavailable: that depends on ACLs, and what is known of them is too old.
        """
        if caller.principal == owner:
            return True
        if self._until_current is not None and self.enabled and caller.principal not in self._super_users:
            await self._until_current()
        return self.allows(caller, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner))

    def visible_to(self, caller: Caller) -> Callable[[Token], bool]:
        """Say which tokens of others may be seen: with DESCRIBE_TOKENS on the owner, or DESCRIBE on the token.

        The ACLs of an owner are looked at once, however many tokens it has.
        """
        shows_token = self.check(caller, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
        shows_tokens_of = self.check(caller, AclOperation.DESCRIBE_TOKENS, ResourceType.USER)
        # By identity: the tokens of an owner share its principal, whose hash costs as much as the rest of a look. To
        # keep the principal here keeps its identity from being another's.
        owners: dict[int, tuple[Principal, bool]] = {}

        def visible(token: Token) -> bool:
            owner = token.owner
            known = owners.get(id(owner))
            if known is None:
                known = owners[id(owner)] = owner, shows_tokens_of(str(owner))
            return known[1] or shows_token(token.token_id)

        return visible

    def may_revoke_any(self, caller: Caller) -> bool:
        """Say whether the caller may expire tokens that it neither owns nor renews."""
        return self._super_users_revoke_any and caller.principal in self._super_users


@dataclass(frozen=True, slots=True)
class _Reading:
    """What some entries say about a caller and an operation."""

    allowed: bool
    denied: bool

    @property
    def allows(self) -> bool:
        return self.allowed and not self.denied


class _Readings:
    """Reads the entries of patterns for one caller and one operation, those of each pattern once."""

    __slots__ = ("_allowing", "_caller", "_denying", "_read")

    def __init__(self, caller: Caller, operation: AclOperation) -> None:
        self._caller = caller
        self._denying = frozenset((operation, AclOperation.ALL))
        self._allowing = frozenset((AclOperation.ALL, *IMPLIED_BY.get(operation, (operation,))))
        # By identity: to hash entries costs more than to read them. They are held, so the identity stays theirs.
        self._read: dict[int, tuple[Entries, _Reading]] = {}

    def of(self, entries: Entries) -> _Reading:
        known = self._read.get(id(entries))
        if known is None:
            known = self._read[id(entries)] = entries, self._reading(entries)
        return known[1]

    def _reading(self, entries: Entries) -> _Reading:
        about = [entry for entry in entries if entry.covers(self._caller.principal, self._caller.host)]
        return _Reading(
            allowed=any(
                entry.permission_type is AclPermissionType.ALLOW and entry.operation in self._allowing
                for entry in about
            ),
            denied=any(
                entry.permission_type is AclPermissionType.DENY and entry.operation in self._denying for entry in about
            ),
        )


def _super_users(text: str) -> frozenset[Principal]:
    try:
        return frozenset(Principal.parse(part.strip()) for part in text.split(";") if part.strip())
    except InvalidPrincipal as error:
        raise ConfigError("super.users", f"{error} Separate principals by semicolons: User:admin;User:ops") from None
