"""Read JSON and names in znodes as a broker reads them.

A broker reads with Jackson: several encodings of Unicode are recognised, what follows the first value is ignored, the
last of equal keys counts. But types are exact: `"5"` and `5.0` are no numbers, `1` is no text, and a number that does
not fit 64 bits is none either.

Names are percent-encoded UTF-8: letters, digits and `.-_` stay; a blank becomes `%20`, `*` becomes `%2A` and `~`
becomes `%7E`. Reading is more generous, as Java's URLDecoder is: `+` is a blank, unencoded characters are taken as they
are, and bytes that are not UTF-8 become U+FFFD.

Source: kafka.utils.Json, kafka.utils.json.DecodeJson; org.apache.kafka.common.utils.Sanitizer, java.net.URLDecoder.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn
from urllib.parse import quote

from kafka_dt.zookeeper.errors import InvalidZnode

INT64 = range(-(2**63), 2**63)
Document = dict[str, Any]
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")


def write(document: Document) -> bytes:
    """Encode an object as a broker does: no blanks, UTF-8."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def read(data: bytes) -> Document:
    """Decode an object; InvalidZnode if the bytes are none."""
    try:
        text = data.decode(json.detect_encoding(data))
        document, _ = _DECODER.raw_decode(text.lstrip(" \t\r\n"))
    except (ValueError, RecursionError):
        raise InvalidZnode("not JSON") from None  # the cause would repeat the content
    if not isinstance(document, dict):
        raise InvalidZnode("not a JSON object")
    return document


def text(document: Document, key: str) -> str:
    """Return the text under a key; InvalidZnode if there is none."""
    value = document.get(key)
    if not isinstance(value, str):
        raise InvalidZnode(f"{key} is missing or not text")
    return value


def texts(document: Document, key: str) -> list[str]:
    """Return the list of texts under a key; InvalidZnode if there is none."""
    value = document.get(key)
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        raise InvalidZnode(f"{key} is missing or not a list of texts")
    return value


def integer(document: Document, key: str) -> int:
    """Return the 64-bit integer under a key; InvalidZnode if there is none."""
    value = document.get(key)
    if type(value) is not int or value not in INT64:
        raise InvalidZnode(f"{key} is missing or not a 64-bit integer")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # Python reads NaN and Infinity, Jackson does not


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def sanitize(name: str) -> str:
    """Encode a name; half a surrogate pair becomes `?`, as in Java."""
    return quote(name, safe="", errors="replace").replace("~", "%7E")


def desanitize(text: str) -> str:
    """Decode a name; InvalidZnode if a percent sign has no two hexadecimal digits behind it."""
    if _MALFORMED.search(text):
        raise InvalidZnode("a name has a percent sign without two hexadecimal digits")
    return _ENCODED.sub(_decode_run, text.replace("+", " "))


def _decode_run(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", errors="replace")
