"""`kafka-dt upstream check`: tell whether the cluster behind a gateway is fit for it.

What is looked at depends on the settings: a cluster that is to keep the tokens needs more than one that only logs
clients in.

- table: for people; a line for each point, and under a problem how to put it right.
- json: for programs, stable. `fit`, and `points`: `point`, `fit`, `needed` (whether a gateway cannot work without it),
  `problem`, `remedy` (both are empty if the point is as it should be).

The exit status is 1 if a gateway with these settings could not work.

Source: docs/how-to/kafka-4.md; docs/how-to/gateway.md#what-the-upstream-cluster-must-allow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli.options import PrincipalType, example, settings_file_option
from kafka_dt.cli.output import Output, output_option, write_json
from kafka_dt.cli.upstream.gateway import GATEWAY_FILE, gateway_of, upstream_settings_named
from kafka_dt.config import TokenStore, UpstreamIdentity, gateway_settings, identity_mechanism
from kafka_dt.kraft.brokers import examine_brokers
from kafka_dt.kraft.finding import Finding, is_fit
from kafka_dt.kraft.fitness import examine, examine_for_logins, tokens_for
from kafka_dt.kraft.news.settings import examine_topic
from kafka_dt.kraft.node import creates_tokens
from kafka_dt.kraft.session import gateway_principal, session
from kafka_dt.log import set_up_logging
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import ScramMechanism

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig
    from kafka_dt.client.connection import Connection
    from kafka_dt.config import Settings


PATIENCE_S: Final = 10.0
"""How long a bootstrap server may take until the login is done, in seconds, before the next one is tried; and for each
answer: one that is cut off from the controllers leaves some questions without one for half a minute."""


@example(
    "kafka-dt upstream check --config gateway.properties",
    "kafka-dt upstream check --config gateway.properties --user-principal User:alice",
)
@click.command()
@settings_file_option(GATEWAY_FILE)
@click.option(
    "--user-principal",
    "owners",
    multiple=True,
    type=PrincipalType(),
    metavar="User:NAME",
    help="A user who comes through the gateway: may the gateway create tokens for this user? No token is created. May "
    "be given several times.",
)
@output_option()
def check(*, config: Path | None, overrides: tuple[str, ...], owners: tuple[str, ...], output: Output) -> None:
    """Tell whether the cluster is fit for the gateway.

    With kafka.dt.token.store=upstream the cluster has to store the gateway's tokens. With the tokens in ZooKeeper,
    owner-token and relay need the cluster's delegation tokens and logins by them, and the right to create a token for
    each user who comes through the gateway. With the other identities the command only logs in as the gateway.

    The command logs in as the gateway and changes nothing in the cluster. The exit status is 1 if a gateway with these
    settings could not work.
    """
    set_up_logging("upstream", level="ERROR")
    settings, client = gateway_of(config, overrides)
    creates = _creates(settings)
    if owners and not creates:
        raise click.UsageError("--user-principal: a gateway with these settings creates no tokens in the cluster.")
    with upstream_settings_named():
        findings = asyncio.run(_examine(client, settings, [Principal.parse(each) for each in owners], creates=creates))
    fit = is_fit(findings)
    if output is Output.JSON:
        write_json({"fit": fit, "points": [_fields(each) for each in findings]}, indent=2)
    else:
        for each in findings:
            _show(each)
    if not fit:
        raise click.ClickException("the cluster is not fit for a gateway with these settings")


def _creates(settings: Settings) -> bool:
    """Say whether the gateway creates tokens in the cluster.

    Raises:
        ConfigError: it could not start with these settings.
    """
    if TokenStore(settings.token_store).has_upstream:
        return creates_tokens(settings)
    gateway = gateway_settings(settings, ())
    return gateway is not None and gateway.identity in {UpstreamIdentity.OWNER_TOKEN, UpstreamIdentity.RELAY}


async def _examine(
    client: ClientConfig, settings: Settings, owners: Sequence[Principal], *, creates: bool
) -> Sequence[Finding]:
    client = client.with_patience(round(PATIENCE_S * 1000))
    asking = session(client, patience_s=PATIENCE_S)
    try:
        connection, gateway = await asking.ready(), gateway_principal(client)
        if TokenStore(settings.token_store).has_upstream:
            findings = await _examine_store(connection, client, settings, gateway, creates=creates)
        else:
            findings = await _examine_logins(connection, client, settings, creates=creates)
            if creates and not owners:
                problem = f"whether {gateway} may create tokens for its clients was not tried"
                remedy = "name users who come through the gateway: --user-principal User:NAME"
                findings.append(Finding("tokens for clients", problem, remedy, needed=False))
        return [*findings, *[await tokens_for(connection, gateway, each) for each in owners]]
    finally:
        await asking.close()


async def _examine_store(
    connection: Connection, client: ClientConfig, settings: Settings, gateway: Principal, *, creates: bool
) -> list[Finding]:
    """Look at a cluster that is to keep the tokens."""
    mechanism, news_topic = ScramMechanism(identity_mechanism(settings)), settings.upstream_news_topic
    findings = [*await examine(connection, client, gateway, mechanism, creates=creates)]
    if is_fit(findings):
        findings += await examine_brokers(connection, client, mechanism, gateway)
    if news_topic:
        findings.append(await examine_topic(connection, news_topic, gateway))
    return findings


async def _examine_logins(
    connection: Connection, client: ClientConfig, settings: Settings, *, creates: bool
) -> list[Finding]:
    """Look at a cluster that clients of the gateway log in at, by tokens if the gateway creates some."""
    findings = [Finding("login of the gateway")]
    if creates:
        mechanism = ScramMechanism(identity_mechanism(settings))
        findings += await examine_for_logins(connection, client, mechanism)
        if is_fit(findings):
            findings += await examine_brokers(connection, client, mechanism, gateway_principal(client))
    return findings


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
