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
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli.options import example, settings_file_option
from kafka_dt.cli.output import Output, output_option, write_json
from kafka_dt.cli.upstream.gateway import GATEWAY_FILE, gateway_of
from kafka_dt.config import identity_mechanism
from kafka_dt.kraft.brokers import examine_brokers
from kafka_dt.kraft.finding import is_fit
from kafka_dt.kraft.fitness import examine
from kafka_dt.kraft.news.settings import examine_topic
from kafka_dt.kraft.node import creates_tokens, gateway_principal, session
from kafka_dt.log import set_up_logging
from kafka_dt_protocol.sasl import ScramMechanism

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig
    from kafka_dt.config import Settings
    from kafka_dt.kraft.finding import Finding


PATIENCE_S: Final = 10.0
"""How long a bootstrap server may take until the login is done, in seconds, before the next one is tried; and for each
answer: one that is cut off from the controllers leaves some questions without one for half a minute."""


@example("kafka-dt upstream check --config gateway.properties")
@click.command()
@settings_file_option(GATEWAY_FILE)
@output_option()
def check(*, config: Path | None, overrides: tuple[str, ...], output: Output) -> None:
    """Tell whether the cluster can store the gateway's tokens.

    The command logs in as the gateway and changes nothing in the cluster. The exit status is 1 if a node with
    kafka.dt.token.store=upstream could not start.
    """
    set_up_logging("upstream", level="ERROR")
    settings, client = gateway_of(config, overrides)
    findings = asyncio.run(_examine(client, settings))
    fit = is_fit(findings)
    if output is Output.JSON:
        write_json({"fit": fit, "points": [_fields(each) for each in findings]}, indent=2)
    else:
        for each in findings:
            _show(each)
    if not fit:
        raise click.ClickException("a node cannot serve the tokens of this cluster")


async def _examine(client: ClientConfig, settings: Settings) -> Sequence[Finding]:
    mechanism, news_topic = ScramMechanism(identity_mechanism(settings)), settings.upstream_news_topic
    creates = creates_tokens(settings)
    client = client.with_patience(round(PATIENCE_S * 1000))
    asking = session(client, patience_s=PATIENCE_S)
    try:
        connection, gateway = await asking.ready(), gateway_principal(client)
        findings = [*await examine(connection, client, gateway, mechanism, creates=creates)]
        if is_fit(findings):
            findings += await examine_brokers(connection, client, mechanism)
        if news_topic:
            findings.append(await examine_topic(connection, news_topic, gateway))
        return findings
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
