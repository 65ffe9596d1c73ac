"""How `kafka-dt token` prints: table, json, properties or jaas.

- table: for people. Instants in ISO 8601 UTC; whole token ids and HMACs, however narrow the terminal, so that they can
  be copied; colours only on a terminal; what does not print (a principal may hold control characters) is escaped.
- json: for programs, stable. A token is an object with `tokenId`, `owner`, `tokenRequester` (`Type:name`), `renewers`
  (a list of these), `issueTimestamp`, `expiryTimestamp`, `maxTimestamp` (milliseconds since 1970) and `hmac` (base64).
  create prints one such object, describe `{"tokens": [...]}`, renew and expire `{"expiryTimestamp": ...}`.
- properties: Java client properties, ready to paste; of several tokens with an empty line between.
- jaas: the value of `sasl.jaas.config`, one line a token.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import javaproperties
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kafka_dt.client import DelegationToken, jaas_line, settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_dt.client import ClientConfig

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS: Final = ("TOKENID", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "MAX", "HMAC")
_WIDE: Final = 1_000_000
"""Columns of the page: rich would cut lines at the terminal's edge, which breaks copying."""


class Output(StrEnum):
    """The forms of `--output`."""

    TABLE = "table"
    JSON = "json"
    PROPERTIES = "properties"
    JAAS = "jaas"


def write_token(token: DelegationToken, output: Output, config: ClientConfig) -> None:
    """Print a token that was just made.

    config: of the client that made it; its servers, security protocol and mechanism go into the properties
    """
    match output:
        case Output.TABLE:
            grid = Table(box=None, show_header=False, pad_edge=False)
            grid.add_column(style="bold", no_wrap=True)
            grid.add_column(no_wrap=True, overflow="ignore")
            for name, value in zip(_COLUMNS, _row(token), strict=True):
                grid.add_row(name, Text(value))
            _print(grid)
        case Output.JSON:
            _write_json(_fields(token))
        case _:
            _write_settings([token], output, config)


def write_tokens(tokens: Sequence[DelegationToken], output: Output, config: ClientConfig) -> None:
    """Print tokens that were described; `config` as in `write_token`."""
    match output:
        case Output.TABLE:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
            for name in _COLUMNS:
                table.add_column(name, no_wrap=True, overflow="ignore")
            for token in tokens:
                table.add_row(*(Text(value) for value in _row(token)))
            _print(table if tokens else Text("no tokens"))
        case Output.JSON:
            _write_json({"tokens": [_fields(token) for token in tokens]})
        case _:
            _write_settings(tokens, output, config)


def write_expiry(expiry_timestamp_ms: int, output: Output) -> None:
    """Print the new expiry of a token."""
    if output is Output.JSON:
        _write_json({"expiryTimestamp": expiry_timestamp_ms})
    else:
        _print(Text(f"EXPIRES  {iso_utc(expiry_timestamp_ms)}"))


def iso_utc(timestamp_ms: int) -> str:
    """Return an instant as people read it, to the second: `2026-11-21T08:00:00Z`; the number if it has no date."""
    try:
        instant = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{instant:%Y-%m-%dT%H:%M:%S}Z"


def _row(token: DelegationToken) -> tuple[str, ...]:
    return (
        _printable(token.token_id),
        _printable(token.owner),
        _printable(token.requester),
        _printable(", ".join(token.renewers)) or "-",
        iso_utc(token.issue_timestamp_ms),
        iso_utc(token.expiry_timestamp_ms),
        iso_utc(token.max_timestamp_ms),
        token.hmac_base64,
    )


def _fields(token: DelegationToken) -> Mapping[str, object]:
    return {
        "tokenId": token.token_id,
        "owner": token.owner,
        "tokenRequester": token.requester,
        "renewers": list(token.renewers),
        "issueTimestamp": token.issue_timestamp_ms,
        "expiryTimestamp": token.expiry_timestamp_ms,
        "maxTimestamp": token.max_timestamp_ms,
        "hmac": token.hmac_base64,
    }


def _write_settings(tokens: Sequence[DelegationToken], output: Output, config: ClientConfig) -> None:
    if output is Output.JAAS:
        pieces = [f"{jaas_line(token)}\n" for token in tokens]
        separator = ""
    else:
        pieces = [javaproperties.dumps(_properties(token, config), timestamp=None) for token in tokens]
        separator = "\n"
    sys.stdout.write(separator.join(pieces))


def _properties(token: DelegationToken, config: ClientConfig) -> Mapping[str, str]:
    made: dict[str, object] = {"bootstrap_servers": ",".join(str(server) for server in config.bootstrap_servers)}
    if config.security_protocol.uses_sasl:
        made["security_protocol"] = config.security_protocol
    if config.credentials and config.credentials.mechanism.startswith("SCRAM-"):
        made["mechanism"] = config.credentials.mechanism
    return settings(token, "java", **made)  # type: ignore[arg-type]


def _write_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _print(what: Table | Text) -> None:
    Console(width=_WIDE, highlight=False).print(what, soft_wrap=isinstance(what, Text))


def _printable(text: str) -> str:
    """Escape what could steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
