"""`kafka-dt upstream check`: tell whether the cluster behind a gateway can be the store of its tokens.

- table: for people; a line for each point, and under a problem how to put it right.
- json: for programs, stable. `fit`, and `points`: `point`, `fit`, `needed` (whether a node needs it to start),
  `problem`, `remedy` (both are empty if the point is as it should be).

The exit status is 1 if a node could not serve the cluster's tokens.

Source: docs/how-to/kafka-4.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_dt.cli.options import example, settings_file_option
from kafka_dt.cli.output import Output, output_option, write_json
from kafka_dt.config import ConfigError, identity_mechanism, load, names_clients, upstream_client_properties
from kafka_dt.config.gateway import BOOTSTRAP
from kafka_dt.kraft.fitness import examine
from kafka_dt.kraft.node import gateway_principal, session
from kafka_dt.log import set_up_logging
from kafka_dt.upstream import UpstreamClient
from kafka_dt_protocol.sasl import ScramMechanism

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig
    from kafka_dt.kraft.fitness import Finding


@example("kafka-dt upstream check --config gateway.properties")
@click.command()
@settings_file_option(
    "The server.properties of a gateway, with the address of the cluster and the gateway's login there."
)
@output_option()
def check(*, config: Path | None, overrides: tuple[str, ...], output: Output) -> None:
    """Tell whether the cluster can be the store of the gateway's tokens.

    The command logs in as the gateway and changes nothing in the cluster. The exit status is 1 if a node with
    kafka.dt.token.store=upstream could not start.
    """
    set_up_logging("upstream", level="ERROR")
    settings = load(config, overrides).settings
    if not settings.upstream_bootstrap_servers:
        raise ConfigError(
            BOOTSTRAP, "is needed: the brokers of the cluster; name the settings of a gateway by --config"
        )
    client = UpstreamClient(upstream_client_properties(settings), names_clients=names_clients(settings)).config
    findings = asyncio.run(_examine(client, ScramMechanism(identity_mechanism(settings))))
    fit = all(each.fit or not each.needed for each in findings)
    if output is Output.JSON:
        write_json({"fit": fit, "points": [_fields(each) for each in findings]}, indent=2)
    else:
        for each in findings:
            _show(each)
    if not fit:
        raise click.ClickException("a node cannot serve the tokens of this cluster")


async def _examine(client: ClientConfig, mechanism: ScramMechanism) -> Sequence[Finding]:
    asking = session(client)
    try:
        return await examine(await asking.ready(), client, gateway_principal(client), mechanism)
    finally:
        await asking.close()


def _fields(finding: Finding) -> dict[str, object]:
    return {
        "point": finding.point,
        "fit": finding.fit,
        "needed": finding.needed,
        "problem": finding.problem,
        "remedy": finding.remedy,
    }


def _show(finding: Finding) -> None:
    if finding.fit:
        click.echo(f"ok       {finding.point}")
    else:
        word = "unfit" if finding.needed else "warning"
        click.echo(f"{word:<8} {finding.point}: {finding.problem}\n         {finding.remedy}")
