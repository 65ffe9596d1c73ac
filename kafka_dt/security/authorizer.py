"""Who may have tokens for others, see tokens of others and end them.

Without an authorizer class everyone may do everything, as in Kafka. With Kafka's AclAuthorizer super users may, and
others as `allow.everyone.if.no.acl.found` says. This version does not read the ACLs: where `/kafka-acl` holds any, it
acts as if they allowed nothing (`acls_present`), so that a rule is never broken by not being known.

Source: KIP-48, KIP-373; Kafka's AclAuthorizer (super users, allow.everyone.if.no.acl.found).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_dt.config import ConfigError, Settings
from kafka_dt.tokens import InvalidPrincipal, Principal, Token


@dataclass(slots=True)
class Authorizer:
    """Answers whether a principal may do something."""

    enabled: bool
    """Whether an authorizer class is configured; without one everyone may do everything."""
    super_users: frozenset[Principal]
    allow_everyone: bool
    """`allow.everyone.if.no.acl.found`."""
    super_users_revoke_any: bool
    """`kafka.dt.super.users.revoke.any`."""
    acls_present: bool = field(default=False)
    """Whether the cluster has ACLs, which are not read."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Authorizer:
        """Make the authorizer of a node.

        Raises:
            ConfigError: a super user is no principal.
        """
        return cls(
            enabled=bool(settings.authorizer_class_name),
            super_users=_super_users(settings.super_users),
            allow_everyone=settings.allow_everyone_if_no_acl_found,
            super_users_revoke_any=settings.super_users_revoke_any,
        )

    def may_create_for(self, requester: Principal, owner: Principal) -> bool:
        """Say whether a token for another owner may be made (CREATE_TOKENS on the User resource)."""
        return requester == owner or self._may(requester)

    def visible_to(self, requester: Principal) -> Callable[[Token], bool]:
        """Say which tokens of others a principal may see (DESCRIBE on the token, DESCRIBE_TOKENS on its owner)."""
        allowed = self._may(requester)
        return lambda _token: allowed

    def may_revoke_any(self, requester: Principal) -> bool:
        """Say whether a principal may expire tokens that it neither owns nor renews."""
        return self.super_users_revoke_any and requester in self.super_users

    def may_describe_cluster(self, requester: Principal) -> bool:
        """Say whether a principal may see what the cluster is configured with (DESCRIBE on the Cluster)."""
        return self._may(requester)

    def may_alter_cluster(self, requester: Principal) -> bool:
        """Say whether a principal may change what the cluster is configured with (ALTER on the Cluster)."""
        return self._may(requester)

    def _may(self, requester: Principal) -> bool:
        if not self.enabled or requester in self.super_users:
            return True
        return self.allow_everyone and not self.acls_present


def _super_users(text: str) -> frozenset[Principal]:
    try:
        return frozenset(Principal.parse(part.strip()) for part in text.split(";") if part.strip())
    except InvalidPrincipal as error:
        raise ConfigError("super.users", f"{error} Separate principals by semicolons: User:admin;User:ops") from None
