"""`kafka-dt check`: everything for which `serve` would refuse the settings, then warnings; it opens no port.

- table: for people; a line for each finding, `refused` or `warning` first.
- json: for programs, stable. `ok` (whether nothing is refused), `refused` and `warnings`: lists of `setting` and
  `problem`; `not_reached`: the settings that name servers which did not answer, so that a node might not start.

The exit status is 1 if something is refused.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from kafka_dt import app
from kafka_dt.cli.check.dangers import dangers, unknown
from kafka_dt.cli.check.finding import Finding, NotReached, Refusal
from kafka_dt.cli.check.secret_files import open_files
from kafka_dt.cli.check.surroundings import SERVERS, surroundings
from kafka_dt.cli.contexts import named
from kafka_dt.cli.options import client_config, connection_options, example, settings_file_option
from kafka_dt.cli.output import Output, counted, output_option, printable, write_json
from kafka_dt.clock import now_ms
from kafka_dt.config import every_error, from_properties, given_properties, unknown_keys
from kafka_dt.log import set_up_logging

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kafka_dt.client import ClientConfig
    from kafka_dt.config import Loaded


@example(
    "kafka-dt check --config server.properties",
    "kafka-dt check --config server.properties --bootstrap-server kafka1:9093 --command-config admin.properties",
)
@click.command()
@settings_file_option("The server.properties of a node, as serve takes it.", required=True)
@connection_options
@output_option()
def check(
    *,
    config: Path,
    overrides: tuple[str, ...],
    bootstrap_server: str | None,
    command_config: Path | None,
    output: Output,
) -> None:
    """Check the settings of a node before it starts.

    The command opens no port, and makes no file or folder. It tells everything for which serve would refuse the
    settings, also a login that ZooKeeper or the cluster behind a gateway refuses, and settings that neither a broker
    nor kafka-dt has. If nothing is refused, it tells what is dangerous: listeners without a login, no authorizer, super
    users that are separated by commas, weak keys, files with secrets that every user of the machine can open, client
    certificates of any authority, certificates near their end, strict audit in a folder with other audit files, a clock
    that is off, and keys that live nodes do not have. Run it as the user that runs the node: root can use every folder.

    The command looks at what depends on several settings, such as the listeners, only when each value can be used. So
    run it again after a correction.

    A ZooKeeper or a cluster that the command cannot reach is a warning, and the exit status is 0: it may be there when
    the node starts. The last line then says that it could not be asked.

    With --bootstrap-server, --command-config or --context the command also compares the settings with those of a
    broker; this needs DescribeConfigs on the cluster.
    """
    set_up_logging("check", level="ERROR")
    given = given_properties(config, overrides)
    refused: Sequence[Finding] = [Finding(error.key, error.reason) for error in every_error(given)]
    warnings: Sequence[Finding] = [*unknown(unknown_keys(given.properties))]
    if not refused:
        loaded = from_properties(given.properties, given.read_otherwise)
        refused = [Finding(error.key, error.reason) for error in app.refusals(loaded.settings)]
        if not refused:
            compared = bootstrap_server is not None or command_config is not None or named() is not None
            brokers = client_config(bootstrap_server, command_config) if compared else None
            found = [*open_files(config, given, loaded.properties), *asyncio.run(_found(loaded, brokers))]
            refused = [each for each in found if isinstance(each, Refusal)]
            warnings = [each for each in found if not isinstance(each, Refusal)]
    not_reached = [each.setting for each in warnings if isinstance(each, NotReached)]
    if output is Output.JSON:
        document: dict[str, object] = {"ok": not refused, "refused": list(map(asdict, refused))}
        write_json(document | {"warnings": list(map(asdict, warnings)), "not_reached": not_reached}, indent=2)
    else:
        for word, findings in (("refused", refused), ("warning", warnings)):
            for each in findings:
                click.echo(f"{word}  {printable(each.setting)}: {printable(each.problem)}")
        if not refused:
            click.echo(f"ok       {_verdict(not_reached)} ({counted(len(warnings), 'warning')})")
    if refused:
        raise click.ClickException(f"a node does not start with these settings: {counted(len(refused), 'problem')}")


def _verdict(not_reached: Sequence[str]) -> str:
    if not not_reached:
        return "a node starts with these settings"
    return f"the settings are accepted; {' and '.join(SERVERS[each] for each in not_reached)} could not be asked"


async def _found(loaded: Loaded, brokers: ClientConfig | None) -> list[Finding]:
    return [*dangers(loaded, now_ms()), *[each async for each in surroundings(loaded.settings, brokers)]]
