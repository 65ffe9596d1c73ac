"""Names as Kafka writes them into paths and JSON: percent-encoded UTF-8.

Letters, digits and `.-_` stay; a blank becomes `%20`, `*` becomes `%2A` and `~` becomes `%7E`. Reading is more
generous, as Java's URLDecoder is: `+` is a blank, unencoded characters are taken as they are, and bytes that
are not UTF-8 become U+FFFD.

Source: org.apache.kafka.common.utils.Sanitizer, java.net.URLEncoder, java.net.URLDecoder.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from kafka_dt.zookeeper.errors import InvalidZnode

_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")


def sanitize(name: str) -> str:
    """Encode a name.

    Args:
        name: any text; half a surrogate pair becomes `?`, as in Java.
    """
    return quote(name, safe="", errors="replace").replace("~", "%7E")


def desanitize(text: str) -> str:
    """Decode a name.

    Args:
        text: what `sanitize` or something like it wrote.

    Raises:
        InvalidZnode: a percent sign without two hexadecimal digits behind it.
    """
    if _MALFORMED.search(text):
        raise InvalidZnode("a name has a percent sign without two hexadecimal digits")
    return _ENCODED.sub(_decode_run, text.replace("+", " "))


def _decode_run(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", errors="replace")
