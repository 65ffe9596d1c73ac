"""`kafka-dt health`: ask a node on this machine whether it is ready, for probes that run a command.

A probe runs the command every few seconds, so it imports little of the program.

Source: docs/how-to/monitor.md#health.
"""

from __future__ import annotations

import http.client
import ssl
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from kafka_dt.cli.output import Output, output_option, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from urllib.parse import SplitResult

DEFAULT_URL: Final = "http://127.0.0.1:9404"
PATH: Final = "/readyz"
TIMEOUT_S: Final = 4.0
ANSWER_BYTES: Final = 64 * 1024
EXAMPLES: Final = """\b
Examples:
  kafka-dt health
  kafka-dt health --config server.properties --output json"""
NO_ANSWER: Final = "down"
"""The state of a node that does not answer."""
_ANY_HOST: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True, slots=True)
class Health:
    """What a node says of itself."""

    state: str
    reasons: Sequence[str]
    is_ready: bool


@click.command(short_help="Ask a node on this machine whether it is ready.", epilog=EXAMPLES)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The server.properties of the node; kafka.dt.metrics.listener says where it is asked.",
)
@click.option("--url", metavar="URL", help=f"Where the node is asked.  [default: {DEFAULT_URL}]")
@output_option()
def health(config: Path | None, url: str | None, output: Output) -> None:
    """Ask a node on this machine whether it is ready; the exit status is 0 if it is, and 1 if not."""
    if url is not None and config is not None:
        raise click.UsageError("--url and --config are two ways to say where; give one of them.")
    found = ask(_named(url or DEFAULT_URL) if config is None else _configured(config))
    if output is Output.JSON:
        write_json({"ready": found.is_ready, "state": found.state, "reasons": found.reasons})
    else:
        click.echo("\n".join((found.state, *found.reasons)))
        if found.state == NO_ANSWER and url is None and config is None:
            click.echo(
                "A node answers where its kafka.dt.metrics.listener says: name it by --config or --url.", err=True
            )
    if not found.is_ready:
        click.get_current_context().exit(1)


def ask(at: SplitResult) -> Health:
    """Ask the node at a URL; a password or a certificate is not needed, and nothing secret is sent."""
    connection: http.client.HTTPConnection
    if at.scheme == "https":
        # The certificate has the name by which others reach the node, not that of this machine's own address.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(at.hostname or "", at.port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        lines = answer.read(ANSWER_BYTES).decode(errors="replace").splitlines()
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Health(NO_ANSWER, [f"{at.netloc} does not answer: {reason}"], is_ready=False)
    finally:
        connection.close()
    if answer.status not in {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE} or not lines:
        return Health(NO_ANSWER, [f"{at.netloc} is no metrics listener: status {answer.status}"], is_ready=False)
    return Health(lines[0], lines[1:], is_ready=answer.status == HTTPStatus.OK)


def _named(url: str) -> SplitResult:
    with suppress(ValueError):  # brackets that do not close, a port over 65,535, a name that no host has
        at = urlsplit(url)
        if at.scheme in {"http", "https"} and at.port != 0 and _is_host(at.hostname or ""):
            return at
    raise click.BadParameter(f"{url!r} is not of the form http://host:port", param_hint="--url")


def _is_host(name: str) -> bool:
    """Say whether a name can be that of a host; ValueError if a part of it is empty or too long."""
    return bool(name.encode("idna")) and name.isprintable() and " " not in name


def _configured(config: Path) -> SplitResult:
    # It takes as long to import as all the rest, and a probe with --url does without.
    from kafka_dt.config import METRICS_LISTENER, ConfigError, load, metrics_settings  # noqa: PLC0415

    settings = metrics_settings(load(config).settings)
    if settings is None:
        raise ConfigError(METRICS_LISTENER, "it is none, so the node cannot be asked")
    endpoint = settings.endpoint
    host = "127.0.0.1" if endpoint.host in _ANY_HOST else endpoint.host
    return urlsplit(f"{endpoint.name}://{f'[{host}]' if ':' in host else host}:{endpoint.port}")
