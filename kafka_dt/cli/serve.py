"""`kafka-dt serve`: run a node on the settings of a Kafka broker."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import click

from kafka_dt import app
from kafka_dt.cli.check.dangers import dangers
from kafka_dt.cli.check.finding import Finding
from kafka_dt.cli.check.secret_files import open_files
from kafka_dt.cli.options import example, settings_file_option
from kafka_dt.clock import now_ms
from kafka_dt.config import ConfigError, Endpoint, Loaded, TokenStore, from_properties, given_properties, load
from kafka_dt.log import LogFormat, event, set_up_logging
from kafka_dt.worker import template_of_workers

_LOG = logging.getLogger(__name__)


@example("kafka-dt serve --config server.properties --override kafka.dt.workers=2")
@click.command()
@settings_file_option("A server.properties, with the settings of a Kafka broker and those of kafka-dt.")
def serve(config: Path | None, overrides: tuple[str, ...]) -> None:
    """Serve delegation tokens until SIGTERM or Ctrl-C."""
    with template_of_workers() as template:
        given = given_properties(config, overrides)
        loaded = from_properties(given.properties, given.read_otherwise)
        settings = loaded.settings
        set_up_logging("supervisor", level=settings.log_level, form=LogFormat(settings.log_format))
        if config is None and not settings.zookeeper_connect and TokenStore(settings.token_store).has_zookeeper:
            raise ConfigError(
                "zookeeper.connect",
                "is needed, for example localhost:2181: name a server.properties with --config, or set it with "
                "--override zookeeper.connect=...",
            )
        report(loaded, [*open_files(config, given, loaded.properties), *dangers(loaded, now_ms())])
        reread = app.Reread(config, partial(load, config, overrides)) if config is not None else None
        app.run(app.serve(loaded, template, announce, reread))


def report(loaded: Loaded, warnings: Iterable[Finding]) -> None:
    """Log what is dangerous in the settings, one line each, and which keys of a broker have no meaning here."""
    if loaded.ignored:
        _LOG.info("Settings of a broker that have no meaning here: %s", ", ".join(loaded.ignored))
    for finding in warnings:
        _LOG.warning("%s: %s", finding.setting, finding.problem)


def announce(addresses: Sequence[Endpoint]) -> None:
    """Log the one line that says that the node serves, with the addresses for clients."""
    _LOG.info("kafka-dt is ready: %s", " ".join(map(str, addresses)), extra=event("ready"))
