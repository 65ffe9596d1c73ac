"""`kafka-dt serve`: run a node on the settings of a Kafka broker."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from kafka_dt import app
from kafka_dt.cli.options import example, settings_file_option
from kafka_dt.config import (
    ConfigError,
    Endpoint,
    Loaded,
    SecretKeyFiles,
    Settings,
    TokenStore,
    listeners,
    load,
    without_effect,
)
from kafka_dt.identity.mechanisms import mechanisms_of
from kafka_dt.log import LogFormat, event, set_up_logging
from kafka_dt.node.secret_keys import warn_of_short
from kafka_dt.tokens import SecretKey
from kafka_dt.worker import template_of_workers

_LOG = logging.getLogger(__name__)


@example("kafka-dt serve --config server.properties --override kafka.dt.workers=2")
@click.command()
@settings_file_option("A server.properties, with the settings of a Kafka broker and those of kafka-dt.")
def serve(config: Path | None, overrides: tuple[str, ...]) -> None:
    """Serve delegation tokens until SIGTERM or Ctrl-C."""
    with template_of_workers() as template:
        loaded = load(config, overrides)
        settings = loaded.settings
        set_up_logging("supervisor", level=settings.log_level, form=LogFormat(settings.log_format))
        if config is None and not settings.zookeeper_connect and TokenStore(settings.token_store).has_zookeeper:
            raise ConfigError(
                "zookeeper.connect",
                "is needed, for example localhost:2181: name a server.properties with --config, or set it with "
                "--override zookeeper.connect=...",
            )
        report_left_out(loaded)
        reread = app.Reread(config, partial(load, config, overrides)) if config is not None else None
        app.run(app.serve(loaded, template, announce, reread))


def report_left_out(loaded: Loaded) -> None:
    """Log the keys that have no effect (a broker's, its security settings, unknown ones), and what is unsafe."""
    if loaded.ignored:
        _LOG.info("Settings of a broker that have no meaning here: %s", ", ".join(loaded.ignored))
    if loaded.unprotected:
        _LOG.warning("Security settings that kafka-dt does not support and ignores: %s", ", ".join(loaded.unprotected))
    if loaded.read_otherwise:
        keys = ", ".join(loaded.read_otherwise)
        _LOG.warning(r"Settings that a broker reads otherwise, as ISO-8859-1; write \uXXXX in their values: %s", keys)
    if loaded.unknown:
        _LOG.warning("Settings that neither a broker nor kafka-dt knows: %s", ", ".join(loaded.unknown))
    if meaningless := without_effect(loaded.settings):
        keys = ", ".join(meaningless)
        _LOG.warning("Settings that have no effect, since the cluster behind the gateway has all tokens: %s", keys)
    _report_keys(loaded.settings)
    _report_mechanisms(loaded.settings)


def _report_keys(settings: Settings) -> None:
    """Log what is wrong with the secret keys, though a node can start with them."""
    if not TokenStore(settings.token_store).has_zookeeper:
        return  # the cluster has them
    files = SecretKeyFiles(settings)
    if opened := [str(file) for _, file in files.open_to_others()]:
        _LOG.warning("Files of secret keys that every user of this machine can open (chmod o=): %s", ", ".join(opened))
    keys = files.keys
    if keys is None:
        _LOG.warning("delegation.token.secret.key is not set: every request about tokens is refused")
        if settings.previous_secret_keys:
            _LOG.warning("kafka.dt.secret.keys.previous has no effect without delegation.token.secret.key")
        return
    warn_of_short(SecretKey(text) for text in {keys.current, *keys.previous})


def _report_mechanisms(settings: Settings) -> None:
    """Log which listeners offer a mechanism that has a warning."""
    made = listeners(settings, mechanisms_of(settings))
    for mechanism in mechanisms_of(settings).values():
        offering = [each.name for each in made if mechanism.name in each.mechanisms]
        if mechanism.warning and offering:
            _LOG.warning("%s is offered on %s; %s", mechanism.name, ", ".join(offering), mechanism.warning)


def announce(addresses: Sequence[Endpoint]) -> None:
    """Log the one line that says that the node serves, with the addresses for clients."""
    _LOG.info("kafka-dt is ready: %s", " ".join(map(str, addresses)), extra=event("ready"))
