"""The README's table of clients: what the tests have seen each client do.

Source: tests/interop/clients/seen.json, which tests/support/clients.py writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROOT: Final = Path(__file__).parents[2]
README: Final = _ROOT / "README.md"
SEEN: Final = _ROOT / "tests" / "interop" / "clients" / "seen.json"
BEGIN: Final = "<!-- clients: docs/generators/clients.py writes this table -->\n"
END: Final = "<!-- end of clients -->\n"

_HEAD: Final = """\

| client | version | create, renew, expire, describe | log in with a token | records through a gateway | seen with |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Words:
    """What the table says of a client beside what was seen."""

    client: str
    login: str
    """How it logs in with a token."""
    without_tokens: str = "it has no such calls"
    """Said if it creates no tokens."""
    records: str = "yes"
    """Said if it sends and reads records through a gateway ..."""
    without_records: str = "no"
    """... and if it does not."""


_SCRAM: Final = "yes, as plain SCRAM"
_TOKENAUTH: Final = "yes, with `tokenauth`"

CLIENTS: Final[Mapping[str, Words]] = {
    "java": Words(
        "Java: AdminClient, producer and consumers, `DelegationTokenCommand` and console tools",
        _TOKENAUTH,
        records="yes, the newer one",
    ),
    "kafka-dt": Words("`kafka-dt token`, `kafka_dt.client`", _TOKENAUTH, without_records="it has no such calls"),
    "aiokafka": Words("Python: aiokafka", _SCRAM),
    "kafka-python": Words("Python: kafka-python", _SCRAM),
    "confluent-kafka": Words("Python: confluent-kafka (librdkafka)", _SCRAM),
    "kcat": Words("kcat (librdkafka)", _SCRAM),
    "franz-go": Words("Go: franz-go", _TOKENAUTH),
    "sarama": Words("Go: sarama", _SCRAM),
    "kafkajs": Words("JavaScript: kafkajs", _SCRAM),
    "@platformatic/kafka": Words("JavaScript: @platformatic/kafka", _SCRAM),
    "rdkafka": Words("Rust: rdkafka (librdkafka)", _SCRAM),
    "spark-on-yarn": Words(
        "Spark's Kafka source and sink on YARN with Kerberos",
        "yes, its executors, with `tokenauth`",
        without_records="not tested",
    ),
    "spark": Words(
        "Spark's Kafka source and sink without Kerberos",
        "yes, also through a renewal and with the next token",
        without_tokens="`kafka_dt.client` does it for them",
    ),
}
"""In the order of the table."""


def page() -> str:
    """Return the README with the table as it should be."""
    text = README.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}{table(json.loads(SEEN.read_text()))}\n{end}{after}"


def table(seen: Mapping[str, Any]) -> str:
    """Make the table of what was seen: client -> `version`, and `does`: what it does -> the tests that saw it."""
    return _HEAD + "".join(_row(CLIENTS[name], seen[name]) for name in CLIENTS if name in seen)


def _row(words: Words, entry: Mapping[str, Any]) -> str:
    does: Mapping[str, list[str]] = entry["does"]
    cells = [
        words.client,
        entry["version"],
        "yes" if "tokens" in does else words.without_tokens,
        words.login if "login" in does else "no",
        words.records if "records" in does else words.without_records,
        ", ".join(_links(does)),
    ]
    return f"| {' | '.join(cells)} |\n"


def _links(does: Mapping[str, list[str]]) -> Iterator[str]:
    for test in dict.fromkeys(test for tests in does.values() for test in tests):
        yield f"[{Path(test).name}]({test})"
