"""`kafka-dt acl add|remove|list`: the ACLs of a cluster in the words of kafka-acls.sh.

They work at a node or a broker, or in ZooKeeper (`kafka_dt/cli/cluster_options.py`).

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

from collections.abc import Sequence
from dataclasses import replace

import click

from kafka_dt.cli.acl.options import PRINCIPAL, many, pattern_option, with_resources, with_rules
from kafka_dt.cli.acl.rules import Resources, Rules
from kafka_dt.cli.administration import Administration, administer
from kafka_dt.cli.cluster_options import ClusterOptions, cluster_options
from kafka_dt.cli.options import confirm, example, yes_option
from kafka_dt.cli.output import Output, counted, printable, write_json
from kafka_dt.cli.tables import console, table
from kafka_dt.client import Acl, AclFilter
from kafka_dt_protocol.api.acls import PatternType


@example(
    "kafka-dt acl add --allow-principal User:alice --operation Read --topic orders --group billing",
    "kafka-dt acl add --allow-principal User:scheduler --operation CreateTokens --user-principal User:alice",
)
@click.command()
@cluster_options
@with_resources
@pattern_option(PatternType.LITERAL, PatternType.PREFIXED)
@with_rules
@click.option("--dry-run", is_flag=True, help="Only show the ACLs.")
def add(*, options: ClusterOptions, resources: Resources, rules: Rules, dry_run: bool, output: Output) -> None:
    """Add ACLs and print them. ACLs that exist already stay as they are."""
    if rules.empty:
        raise click.UsageError("Name who is allowed or denied: --allow-principal or --deny-principal.")
    resources.require_types_of_users()
    acls = rules.acls(resources)
    if not acls:
        raise click.UsageError("--producer needs --topic or --transactional-id; --consumer needs --topic or --group.")
    if not dry_run:
        administer(options, "acl add", lambda admin: admin.create_acls(acls))
    _write(acls, output)


@example(
    "kafka-dt acl remove --allow-principal User:alice --operation Read --topic orders",
    "kafka-dt acl remove --topic orders --dry-run",
)
@click.command()
@cluster_options
@with_resources
@pattern_option(PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH, PatternType.ANY)
@with_rules
@click.option("--dry-run", is_flag=True, help="Only show the ACLs that would go.")
@yes_option
def remove(
    *, options: ClusterOptions, resources: Resources, rules: Rules, dry_run: bool, confirmed: bool, output: Output
) -> None:
    """Remove ACLs and print them.

    The command removes exactly the ACLs that `add` adds with the same options. Without --allow-principal and
    --deny-principal it removes all ACLs of the resources: it asks, and a script must say --yes.
    """
    if rules.empty:
        if not resources.patterns:
            raise click.UsageError("Name the resources whose ACLs go, and the principals if not all ACLs go.")
        filters = resources.filters()
    else:
        filters = [AclFilter.of(each) for each in rules.acls(resources)]

    async def find(admin: Administration) -> list[Acl]:
        return sorted({found for each in filters for found in await admin.acls(each)})

    if dry_run or (rules.empty and not confirmed):
        found = administer(options, "acl remove", find)
        if dry_run or not found:
            _write(found, output)
            return
        confirm(
            f"This removes {counted(len(found), 'ACL')}. Continue?",
            f"This would remove {counted(len(found), 'ACL')}: say --yes, or name principals.",
        )
    _write(sorted(administer(options, "acl remove", lambda admin: admin.delete_acls(filters))), output)


@example(
    "kafka-dt acl list --topic orders --resource-pattern-type match",
    "kafka-dt acl list --principal User:alice --output json",
)
@click.command("list")
@cluster_options
@with_resources
@pattern_option(PatternType.ANY, PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH)
@many("--principal", "principals", "Only ACLs of this principal", metavar="User:NAME", type=PRINCIPAL)
def list_acls(*, options: ClusterOptions, resources: Resources, principals: tuple[str, ...], output: Output) -> None:
    """List ACLs: all, or those of the resources and of the principals."""
    filters = [replace(each, principal=name) for each in resources.filters() for name in principals or (None,)]

    async def find(admin: Administration) -> list[Acl]:
        return sorted({found for each in filters for found in await admin.acls(each)})

    _write(administer(options, "acl list", find), output)


def _write(acls: Sequence[Acl], output: Output) -> None:
    rows = [_fields(each) for each in acls]
    if output is Output.JSON:
        write_json(rows, indent=2)
    elif rows:
        made = table("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
        for row in rows:
            made.add_row(*map(printable, row.values()))
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
