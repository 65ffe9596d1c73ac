"""How `kafka-dt token` prints: table, json, properties or jaas.

- table: for people. A line for each field and an empty one between tokens, for a row of a whole token is wider than
  any terminal. Instants in ISO 8601 UTC; whole token ids and HMACs, however narrow the terminal, so that they can be
  copied; bold only on a terminal; what does not print (a principal may hold control characters) is escaped.
- json: for programs, stable. A token is an object with `tokenId`, `owner`, `tokenRequester` (`Type:name`), `renewers`
  (a list of these), `issueTimestamp`, `expiryTimestamp`, `maxTimestamp` (milliseconds since 1970) and `hmac` (base64).
  create prints one such object, describe `{"tokens": [...]}`, renew and expire `{"expiryTimestamp": ...}`.
- properties: Java client properties, ready to paste; of several tokens each below a comment with its id, and with an
  empty line between. A client takes one of them: of all in one file the last would win.
- jaas: the value of `sasl.jaas.config`, one line a token.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import javaproperties
from rich.console import Console
from rich.text import Text

from kafka_dt.client import DelegationToken, jaas_line, settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_dt.client import ClientConfig

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES: Final = ("TOKENID", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "MAX", "HMAC")


class TokenOutput(StrEnum):
    """The forms of `--output`."""

    TABLE = "table"
    JSON = "json"
    PROPERTIES = "properties"
    JAAS = "jaas"


def write_token(token: DelegationToken, output: TokenOutput, config: ClientConfig) -> None:
    """Print a token that was just made.

    config: of the client that made it; its servers, security protocol and mechanism go into the properties
    """
    match output:
        case TokenOutput.TABLE:
            _print(_block(token))
        case TokenOutput.JSON:
            _write_json(_fields(token))
        case _:
            _write_settings([token], output, config)


def write_tokens(tokens: Sequence[DelegationToken], output: TokenOutput, config: ClientConfig) -> None:
    """Print tokens that were described; `config` as in `write_token`."""
    match output:
        case TokenOutput.TABLE:
            _print(Text("\n\n").join(map(_block, tokens)) if tokens else Text("no tokens"))
        case TokenOutput.JSON:
            _write_json({"tokens": [_fields(token) for token in tokens]})
        case _:
            _write_settings(tokens, output, config)


def write_expiry(expiry_timestamp_ms: int, output: TokenOutput, *, deleted: bool = False) -> None:
    """Print the new expiry of a token.

    deleted: it was deleted at once; people read that, programs the instant at which it was
    """
    if output is TokenOutput.JSON:
        _write_json({"expiryTimestamp": expiry_timestamp_ms})
    elif deleted:
        _print(Text("deleted"))
    else:
        _print(Text(f"EXPIRES  {iso_utc(expiry_timestamp_ms)}"))


def iso_utc(timestamp_ms: int) -> str:
    """Return an instant as people read it, to the second: `2026-11-21T08:00:00Z`; the number if it has no date."""
    try:
        instant = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{instant:%Y-%m-%dT%H:%M:%S}Z"


def _block(token: DelegationToken) -> Text:
    lines = (
        Text.assemble((f"{name:9}", "bold"), f"  {value}") for name, value in zip(_NAMES, _row(token), strict=True)
    )
    return Text("\n").join(lines)


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


def _write_settings(tokens: Sequence[DelegationToken], output: TokenOutput, config: ClientConfig) -> None:
    if output is TokenOutput.JAAS:
        sys.stdout.write("".join(f"{jaas_line(token)}\n" for token in tokens))
        return
    pieces = [javaproperties.dumps(_properties(token, config), timestamp=None) for token in tokens]
    if len(tokens) > 1:
        pieces = [f"# {_printable(token.token_id)}\n{piece}" for token, piece in zip(tokens, pieces, strict=True)]
    sys.stdout.write("\n".join(pieces))


def _properties(token: DelegationToken, config: ClientConfig) -> Mapping[str, str]:
    made: dict[str, object] = {"bootstrap_servers": ",".join(str(server) for server in config.bootstrap_servers)}
    if config.security_protocol.uses_sasl:
        made["security_protocol"] = config.security_protocol
    if config.credentials and config.credentials.mechanism.startswith("SCRAM-"):
        made["mechanism"] = config.credentials.mechanism
    return settings(token, "java", **made)  # type: ignore[arg-type]


def _write_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _print(what: Text) -> None:
    # Without soft_wrap rich would cut lines at the terminal's edge, which breaks copying.
    Console(highlight=False).print(what, soft_wrap=True)


def _printable(text: str) -> str:
    """Escape what could steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
