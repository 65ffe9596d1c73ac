"""The SCRAM users and ACLs of a cluster, in ZooKeeper or over the Kafka protocol (`cluster_options.py`).

    users = administer(options, "user delete", lambda admin: admin.scram_users())

Over the Kafka protocol it is `kafka_dt.client.AdminClient`. On ZooKeeper itself the same methods work with the settings
of a node and need no right: for the first user of a cluster, for the users of a gateway, and for a restored ZooKeeper,
which no node uses until an operator has put it right. Brokers and nodes hear of the changes as of their own, and each
change is an audit event (`audit_recorder.py`).

Source: kafka.admin.ConfigCommand and kafka.admin.AclCommand of Kafka 3.9, with --zookeeper and --authorizer-properties.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, Unpack

import click

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.recorder import Facts
from kafka_dt.cli.audit_recorder import origin_of, recorder_of
from kafka_dt.cli.node_options import connected, now_ms
from kafka_dt.cli.options import ask
from kafka_dt.client import Acl, AclFilter, AdminClient
from kafka_dt.client.admin_client import DEFAULT_ITERATIONS, SALT_BYTES
from kafka_dt.identity.acls.binding import AccessControlEntry, AclBinding, ResourcePattern
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.filters import AccessControlEntryFilter, AclBindingFilter, ResourcePatternFilter
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.acls.store import AclError
from kafka_dt.identity.credentials.scram_changes import Deletion, ScramUserError, ScramUserManager, Upsertion
from kafka_dt.server.handlers.acls import acl_text
from kafka_dt.tokens import Principal, StoreUnavailable
from kafka_dt.zookeeper.stores.acls import ZooKeeperAclStore
from kafka_dt.zookeeper.stores.scram_users import ZooKeeperScramUsers, ZooKeeperScramUserStore
from kafka_dt.zookeeper.znodes.acls import AclZnode
from kafka_dt.zookeeper.znodes.kafka import UserZnode
from kafka_dt_protocol.api.acls import PatternType
from kafka_dt_protocol.sasl import ScramMechanism, salt_password

if TYPE_CHECKING:
    from kafka_dt.audit.recorder import Recorder
    from kafka_dt.cli.cluster_options import ClusterOptions
    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

T = TypeVar("T")
_AUTHORIZER: Final = "authorizer.class.name"


class Administration(Protocol):
    """What the commands ask for; `AdminClient` has the contract of each method."""

    async def scram_users(self, names: Iterable[str] | None = None) -> dict[str, dict[ScramMechanism, int]]:
        """Return the mechanisms of users, each with its iterations."""

    async def set_password(
        self, user: str, password: str, mechanisms: Iterable[ScramMechanism], iterations: int = DEFAULT_ITERATIONS
    ) -> None:
        """Set the password of a user for some mechanisms; makes the user if there is none."""

    async def delete_user(self, user: str, mechanisms: Iterable[ScramMechanism]) -> None:
        """Delete the credentials of a user."""

    async def acls(self, meant: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter matches."""

    async def create_acls(self, acls: Sequence[Acl]) -> None:
        """Create ACLs."""

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Delete the ACLs that any of the filters matches, and return them."""


def administer(options: ClusterOptions, command: str, request: Callable[[Administration], Awaitable[T]]) -> T:
    """Do a command's work on users or ACLs.

    command: its words, for the audit events of what it changes in ZooKeeper: `user delete`

    Raises:
        TokenClientError: the server cannot be reached, or has refused.
        ConfigError: the settings cannot be used.
        ZooKeeperError: ZooKeeper cannot be reached, or refuses.
        click.ClickException: a rule of users or ACLs forbids it.
    """
    if not options.on_zookeeper:
        return ask(AdminClient(options.client()), request)

    async def work(settings: Settings) -> T:
        async with (
            connected(settings) as client,
            recorder_of(settings, command.partition(" ")[0]) as recorder,
        ):
            return await request(ZooKeeperAdministration(client, settings, command, recorder))

    return asyncio.run(work(options.settings(needs_key=False)))


class ZooKeeperAdministration:
    """Implements `Administration` on ZooKeeper itself.

    Args:
        client: a started client.
        settings: of a node; they say whether there are ACLs.
        command: its words, for the audit events.
        recorder: takes the events; None without audit.
    """

    def __init__(self, client: ZooKeeperClient, settings: Settings, command: str, recorder: Recorder | None) -> None:
        self._client = client
        self._settings = settings
        self._command = command
        self._recorder = recorder

    async def scram_users(self, names: Iterable[str] | None = None) -> dict[str, dict[ScramMechanism, int]]:
        """Return the mechanisms of users, each with its iterations; a user that does not exist is left out."""
        if await self._client.exists(UserZnode.PARENT) is None:
            return {}  # to list users makes no znode
        async with self._users() as users:
            described = await users.describe(tuple(names or ()))
        return {
            user: {mechanism: held.iterations for mechanism, held in found.items()}
            for user, found in described.items()
            if not isinstance(found, ScramUserError)
        }

    async def set_password(
        self, user: str, password: str, mechanisms: Iterable[ScramMechanism], iterations: int = DEFAULT_ITERATIONS
    ) -> None:
        """Set the password of a user for some mechanisms; makes the user if there is none."""
        upsertions = []
        for mechanism in mechanisms:
            salt = secrets.token_bytes(SALT_BYTES)
            salted = await asyncio.to_thread(salt_password, mechanism, password, salt, iterations)
            upsertions.append(Upsertion(user, mechanism, iterations, salt, salted))
        await self._alter(user, (), upsertions)

    async def delete_user(self, user: str, mechanisms: Iterable[ScramMechanism]) -> None:
        """Delete the credentials of a user; one without any is no user any more."""
        await self._alter(user, [Deletion(user, mechanism) for mechanism in mechanisms], ())

    async def acls(self, meant: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter matches."""
        self._require_authorizer()
        if await self._client.exists(AclZnode.ROOTS[PatternType.LITERAL]) is None:
            return []  # to list ACLs makes no znode
        async with self._acls() as acls:
            return [_acl(binding) for binding in await acls.describe(_filter(meant))]

    async def create_acls(self, acls: Sequence[Acl]) -> None:
        """Create ACLs; those that exist already stay as they are."""
        self._require_authorizer()
        async with self._acls() as manager:
            results = await manager.create([_binding(each) for each in acls])
        for each, error in zip(acls, results, strict=True):
            if error is None:
                self._record(EventType.ACL_CREATED, acl=acl_text(each))
        _raise_first(results)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Delete the ACLs that any of the filters matches, and return them."""
        self._require_authorizer()
        async with self._acls() as manager:
            matched = [each for found in await manager.delete([_filter(each) for each in filters]) for each in found]
        deleted = [_acl(each.binding) for each in matched if each.error is None]
        for acl in deleted:
            self._record(EventType.ACL_DELETED, acl=acl_text(acl))
        _raise_first([each.error for each in matched])
        return deleted

    async def _alter(self, user: str, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> None:
        async with self._users() as users:
            error = (await users.alter(deletions, upsertions))[user]
        if error is not None:
            raise click.ClickException(str(error)) from error
        self._record(EventType.SCRAM_USER_CHANGED, user=user)

    @asynccontextmanager
    async def _users(self) -> AsyncIterator[ScramUserManager]:
        users = ZooKeeperScramUsers(self._client, now_ms=now_ms)
        try:
            await users.start()
            yield ScramUserManager(ZooKeeperScramUserStore(self._client, users))
        except StoreUnavailable as error:
            raise click.ClickException(str(error)) from error
        finally:
            await users.close()

    @asynccontextmanager
    async def _acls(self) -> AsyncIterator[AclManager]:
        store = ZooKeeperAclStore(self._client, now_ms=now_ms)
        manager = AclManager(store, AclCache())
        try:
            await manager.start()
            yield manager
        except AclError as error:
            raise click.ClickException(str(error)) from error
        finally:
            await store.close()

    def _require_authorizer(self) -> None:
        """Refuse ACLs that no node with these settings would look at."""
        if not self._settings.authorizer_class_name:
            raise click.ClickException(
                f"nodes with these settings have no ACLs, because {_AUTHORIZER} is not set; "
                f"--override {_AUTHORIZER}=kafka.security.authorizer.AclAuthorizer if those of brokers are meant"
            )

    def _record(self, kind: EventType, **facts: Unpack[Facts]) -> None:
        if self._recorder is not None:
            self._recorder.record(kind, Outcome.OK, origin_of(self._command), **facts)


def _raise_first(errors: Iterable[AclError | None]) -> None:
    for error in errors:
        if error is not None:
            raise click.ClickException(str(error)) from error


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        ResourcePattern(acl.resource_type, acl.resource_name, acl.pattern_type),
        AccessControlEntry(Principal.parse(acl.principal), acl.host, acl.operation, acl.permission_type),
    )


def _acl(binding: AclBinding) -> Acl:
    pattern, entry = binding.pattern, binding.entry
    return Acl(
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        str(entry.principal),
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def _filter(meant: AclFilter) -> AclBindingFilter:
    return AclBindingFilter(
        ResourcePatternFilter(meant.resource_type, meant.resource_name, meant.pattern_type),
        AccessControlEntryFilter(meant.principal, meant.host, meant.operation, meant.permission_type),
    )
