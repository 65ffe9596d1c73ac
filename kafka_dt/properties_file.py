"""Files in Java's properties form, as kafka-dt reads them, and what Kafka reads otherwise.

    properties = parse(path.read_bytes())
    keys = read_otherwise_by_kafka(path.read_bytes())

Kafka reads every file as ISO-8859-1. kafka-dt does so with a file that is not UTF-8.

Source: docs/decisions/0059-utf-8-and-a-brokers-iso-8859-1.md; org.apache.kafka.common.utils.Utils.loadProps,
java.util.Properties.load.
"""

from __future__ import annotations

from typing import Final

import javaproperties

MALFORMED: Final = r"it has \u without four hex digits behind it; write a backslash as \\"
"""What is wrong with a file that cannot be parsed; not the escape, which may be of a password."""


def parse(content: bytes) -> dict[str, str]:
    r"""Return the keys and texts of a file.

    Raises:
        ValueError: there is a `\u` without four hex digits behind it; the text of the error shows the escape.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("iso-8859-1")
    properties: dict[str, str] = javaproperties.loads(text)
    return properties


def read_otherwise_by_kafka(content: bytes) -> frozenset[str]:
    """Return the keys whose texts Kafka reads otherwise: they have characters of UTF-8 that are not ASCII's.

    Raises:
        ValueError: as `parse` does.
    """
    if content.isascii():
        return frozenset()
    theirs: dict[str, str] = javaproperties.loads(content.decode("iso-8859-1"))
    return frozenset(key for key, text in parse(content).items() if theirs.get(key) != text)
