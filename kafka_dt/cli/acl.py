"""`kafka-dt acl add|remove|list`: the ACLs of a cluster in the words of kafka-acls.sh, at a node or a broker.

Resources are `--topic`, `--group`, `--transactional-id`, `--delegation-token`, `--user-principal` and `--cluster`, the
pattern is `--resource-pattern-type`. Who may do what is `--allow-principal`, `--deny-principal`, `--allow-host`,
`--deny-host` and `--operation`; `--producer`, `--consumer` and `--idempotent` stand for the operations that such a
client needs.

- table: for people; a row for each ACL.
- json: for programs, stable: an array of objects with `resource_type`, `resource_name`, `pattern_type`, `principal`,
  `host`, `operation` and `permission_type`, in Kafka's words (`DELEGATION_TOKEN`, `PREFIXED`, `ALLOW`).

Source: org.apache.kafka.tools.AclCommand; KIP-11, KIP-290, KIP-373.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import product
from typing import Any, Final, TypeVar

import click
from rich.text import Text

from kafka_dt.cli import SuggestingGroup
from kafka_dt.cli.options import ask, config_option, confirm, example, together
from kafka_dt.cli.output import Output, counted, output_option, printable, write_json
from kafka_dt.cli.tables import console, table
from kafka_dt.client import Acl, AclFilter, AdminClient, ClientConfig
from kafka_dt.identity.acls.binding import ANY_HOST, CLUSTER_NAME, SUPPORTED_OPERATIONS
from kafka_dt_protocol.api.acls import AclOperation, AclPermissionType, PatternType, ResourceType

E = TypeVar("E", bound=IntEnum)
_NAMED: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
"""The options that name resources -> their type."""
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


class _Word(click.ParamType[E]):
    """One of Kafka's words, in any case of its letters, with or without underscores."""

    name = "word"

    def __init__(self, kind: type[E], members: Sequence[E]) -> None:
        self._kind = kind
        self._members = {_folded(member.name): member for member in members}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> E:
        if isinstance(value, self._kind):
            return value
        member = self._members.get(_folded(str(value)))
        if member is None:
            self.fail(f"{value!r} is none of {', '.join(_word(each) for each in self._members.values())}.", param, ctx)
        return member


class _PrincipalName(click.ParamType[str]):
    """A principal with its type, as ACLs have it; `User:*` is every user."""

    name = "principal"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, colon, name = value.partition(":")
        if not (kind and colon and name):
            self.fail(f"{value!r} has no type: write User:{value}", param, ctx)
        return value


def _folded(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def _word(member: IntEnum) -> str:
    return member.name.title().replace("_", "")


_OPERATION: Final = _Word(AclOperation, [each for each in AclOperation if each >= AclOperation.ALL])
_PATTERN: Final = _Word(PatternType, [each for each in PatternType if each is not PatternType.UNKNOWN])
_PRINCIPAL: Final = _PrincipalName()


def _many(flag: str, name: str, text: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(flag, name, multiple=True, help=f"{text}; may be given several times.", **attributes)


_resource_options: Final = together(
    _many("--topic", "topic", "A topic, or * for every one", metavar="NAME"),
    _many("--group", "group", "A consumer group, or * for every one", metavar="NAME"),
    _many("--transactional-id", "transactional_id", "A transactional id, or * for every one", metavar="NAME"),
    _many("--delegation-token", "delegation_token", "The id of a delegation token, or * for every one", metavar="ID"),
    _many(
        "--user-principal",
        "user_principal",
        "A user whose tokens others may create or describe (KIP-373), or *",
        metavar="User:NAME",
    ),
    click.option("--cluster", is_flag=True, help="The cluster itself."),
)


def _pattern_option(default: PatternType, words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--resource-pattern-type",
        "pattern_type",
        type=_PATTERN,
        default=default.name.lower(),
        show_default=True,
        metavar=words,
        help="How names are compared. literal: exactly; prefixed: they begin so; match: every ACL that applies to the "
        "name; any: literal or prefixed.",
    )


_rule_options: Final = together(
    _many(
        "--allow-principal",
        "allowed",
        "A principal that is allowed, User:* is all",
        metavar="User:NAME",
        type=_PRINCIPAL,
    ),
    _many("--deny-principal", "denied", "A principal that is denied", metavar="User:NAME", type=_PRINCIPAL),
    _many("--allow-host", "allowed_hosts", "An address of allowed principals [default: *]", metavar="IP"),
    _many("--deny-host", "denied_hosts", "An address of denied principals [default: *]", metavar="IP"),
    _many(
        "--operation", "operations", "What they may do, such as Read or CreateTokens [default: All]", type=_OPERATION
    ),
    click.option("--producer", is_flag=True, help="Instead of --operation: all that a producer to the topic needs."),
    click.option(
        "--consumer", is_flag=True, help="Instead of --operation: all that a consumer of the topic in the group needs."
    ),
    click.option(
        "--idempotent", is_flag=True, help="With --producer: idempotent writes, which brokers before 2.8 guard."
    ),
)


def _with_resources(command: Callable[..., None]) -> Callable[..., None]:
    """Make `Resources` of the options: the argument `resources`."""

    @functools.wraps(command)
    def decorated(*, cluster: bool, pattern_type: PatternType, **others: Any) -> None:
        patterns = [(kind, name) for option, kind in _NAMED.items() for name in others.pop(option)]
        if cluster:
            patterns.append((ResourceType.CLUSTER, CLUSTER_NAME))
        command(resources=Resources(tuple(patterns), pattern_type), **others)

    with_options: Callable[..., None] = _resource_options(decorated)
    return with_options


def _with_rules(command: Callable[..., None]) -> Callable[..., None]:
    """Make `Rules` of the options: the argument `rules`."""
    names = Rules.__dataclass_fields__

    @functools.wraps(command)
    def decorated(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in names}
        command(rules=Rules(**given), **arguments)

    with_options: Callable[..., None] = _rule_options(decorated)
    return with_options


@click.group(cls=SuggestingGroup)
def acl() -> None:
    """Add, remove and list ACLs, in the words of kafka-acls.sh."""


@example(
    "kafka-dt acl add --allow-principal User:alice --operation Read --topic orders --group billing",
    "kafka-dt acl add --allow-principal User:scheduler --operation CreateTokens --user-principal User:alice",
)
@acl.command()
@config_option
@_with_resources
@_pattern_option(PatternType.LITERAL, "[literal|prefixed]")
@_with_rules
@click.option("--dry-run", is_flag=True, help="Only show the ACLs.")
@output_option()
def add(*, config: ClientConfig, resources: Resources, rules: Rules, dry_run: bool, output: Output) -> None:
    """Add ACLs and print them. ACLs that exist already stay as they are."""
    if rules.empty:
        raise click.UsageError("Name who is allowed or denied: --allow-principal or --deny-principal.")
    acls = rules.acls(resources)
    if not acls:
        raise click.UsageError("--producer needs --topic or --transactional-id; --consumer needs --topic or --group.")
    if not dry_run:
        ask(AdminClient(config), lambda client: client.create_acls(acls))
    _write(acls, output)


@example(
    "kafka-dt acl remove --allow-principal User:alice --operation Read --topic orders",
    "kafka-dt acl remove --topic orders --dry-run",
)
@acl.command()
@config_option
@_with_resources
@_pattern_option(PatternType.LITERAL, "[literal|prefixed|match|any]")
@_with_rules
@click.option("--dry-run", is_flag=True, help="Only show the ACLs that would go.")
@click.option("--yes", "confirmed", is_flag=True, help="Do not ask.")
@output_option()
def remove(
    *, config: ClientConfig, resources: Resources, rules: Rules, dry_run: bool, confirmed: bool, output: Output
) -> None:
    """Remove ACLs and print them: exactly those that `add` adds with the same options, or all of the resources.

    Without --allow-principal and --deny-principal the command removes all ACLs of the resources. It then asks before,
    and a script must say --yes.
    """
    if rules.empty:
        if not resources.patterns:
            raise click.UsageError("Name the resources whose ACLs go, and the principals if not all ACLs go.")
        filters = resources.filters()
    else:
        filters = [AclFilter.of(each) for each in rules.acls(resources)]

    async def find(client: AdminClient) -> list[Acl]:
        return sorted({found for each in filters for found in await client.acls(each)})

    if dry_run or (rules.empty and not confirmed):
        found = ask(AdminClient(config), find)
        if dry_run or not found:
            _write(found, output)
            return
        confirm(
            f"This removes {counted(len(found), 'ACL')}. Continue?",
            f"This would remove {counted(len(found), 'ACL')}: say --yes, or name principals.",
        )
    _write(sorted(ask(AdminClient(config), lambda client: client.delete_acls(filters))), output)


@example(
    "kafka-dt acl list --topic orders --resource-pattern-type match",
    "kafka-dt acl list --principal User:alice --output json",
)
@acl.command("list")
@config_option
@_with_resources
@_pattern_option(PatternType.ANY, "[any|literal|prefixed|match]")
@_many("--principal", "principals", "Only ACLs of this principal", metavar="User:NAME", type=_PRINCIPAL)
@output_option()
def list_acls(*, config: ClientConfig, resources: Resources, principals: tuple[str, ...], output: Output) -> None:
    """List ACLs: all, or those of the resources and of the principals."""
    filters = [replace(each, principal=name) for each in resources.filters() for name in principals or (None,)]

    async def find(client: AdminClient) -> list[Acl]:
        return sorted({found for each in filters for found in await client.acls(each)})

    _write(ask(AdminClient(config), find), output)


def _write(acls: Sequence[Acl], output: Output) -> None:
    rows = [_fields(each) for each in acls]
    if output is Output.JSON:
        write_json(rows, indent=2)
    elif rows:
        made = table("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
        for row in rows:
            made.add_row(*(Text(printable(cell)) for cell in row.values()))
        console().print(made)
    else:
        click.echo("no ACLs")


def _fields(each: Acl) -> dict[str, str]:
    return {
        "resource_type": each.resource_type.name,
        "resource_name": each.resource_name,
        "pattern_type": each.pattern_type.name,
        "principal": each.principal,
        "host": each.host,
        "operation": each.operation.name,
        "permission_type": each.permission_type.name,
    }
