"""The options of `kafka-dt acl`: they become `Resources` and `Rules`.

Source: org.apache.kafka.tools.AclCommand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar

import click

from kafka_dt.cli.acl.rules import Resources, Rules
from kafka_dt.cli.options import together
from kafka_dt.identity.acls.binding import CLUSTER_NAME
from kafka_dt_protocol.api.acls import AclOperation, PatternType, ResourceType

E = TypeVar("E", bound=IntEnum)
_NAMED: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
"""The options that name resources -> their type."""


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
PRINCIPAL: Final = _PrincipalName()


def many(flag: str, name: str, text: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option that may be given several times."""
    return click.option(flag, name, multiple=True, help=f"{text}; may be given several times.", **attributes)


_resource_options: Final = together(
    many("--topic", "topic", "A topic, or * for every one", metavar="NAME"),
    many("--group", "group", "A consumer group, or * for every one", metavar="NAME"),
    many("--transactional-id", "transactional_id", "A transactional id, or * for every one", metavar="NAME"),
    many("--delegation-token", "delegation_token", "The id of a delegation token, or * for every one", metavar="ID"),
    many(
        "--user-principal",
        "user_principal",
        "A user whose tokens others may create or describe (KIP-373), or *",
        metavar="User:NAME",
    ),
    click.option("--cluster", is_flag=True, help="The cluster itself."),
)


_COMPARED: Final = {
    PatternType.LITERAL: "literal: exactly",
    PatternType.PREFIXED: "prefixed: they begin so",
    PatternType.MATCH: "match: every ACL that applies to the name",
    PatternType.ANY: "any: literal or prefixed",
}
"""What each type of pattern means."""


def pattern_option(default: PatternType, *others: PatternType) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--resource-pattern-type` with the types that a command takes: the argument `pattern_type`."""
    types = (default, *others)
    return click.option(
        "--resource-pattern-type",
        "pattern_type",
        type=_PATTERN,
        default=default.name.lower(),
        show_default=True,
        metavar=f"[{'|'.join(each.name.lower() for each in types)}]",
        help=f"How names are compared. {'; '.join(_COMPARED[each] for each in types)}.",
    )


_rule_options: Final = together(
    many(
        "--allow-principal",
        "allowed",
        "A principal that is allowed, User:* is all",
        metavar="User:NAME",
        type=PRINCIPAL,
    ),
    many("--deny-principal", "denied", "A principal that is denied", metavar="User:NAME", type=PRINCIPAL),
    many("--allow-host", "allowed_hosts", "An address of allowed principals [default: *]", metavar="IP"),
    many("--deny-host", "denied_hosts", "An address of denied principals [default: *]", metavar="IP"),
    many("--operation", "operations", "What they may do, such as Read or CreateTokens [default: All]", type=_OPERATION),
    click.option("--producer", is_flag=True, help="Instead of --operation: all that a producer to the topic needs."),
    click.option(
        "--consumer", is_flag=True, help="Instead of --operation: all that a consumer of the topic in the group needs."
    ),
    click.option(
        "--idempotent", is_flag=True, help="With --producer: idempotent writes, which brokers before 2.8 guard."
    ),
)


def with_resources(command: Callable[..., None]) -> Callable[..., None]:
    """Make `Resources` of the options: the argument `resources`."""

    @functools.wraps(command)
    def decorated(*, cluster: bool, pattern_type: PatternType, **others: Any) -> None:
        patterns = [(kind, name) for option, kind in _NAMED.items() for name in others.pop(option)]
        if cluster:
            patterns.append((ResourceType.CLUSTER, CLUSTER_NAME))
        command(resources=Resources(tuple(patterns), pattern_type), **others)

    with_options: Callable[..., None] = _resource_options(decorated)
    return with_options


def with_rules(command: Callable[..., None]) -> Callable[..., None]:
    """Make `Rules` of the options: the argument `rules`."""
    names = Rules.__dataclass_fields__

    @functools.wraps(command)
    def decorated(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in names}
        command(rules=Rules(**given), **arguments)

    with_options: Callable[..., None] = _rule_options(decorated)
    return with_options
