r"""The directives that messages of DIGEST-MD5 are made of, read and written: `1#( name "=" (token | quoted-string) )`.

    parse_directives(b'username="chris", ,nc=00000001')  ->  {b"username": b"chris", b"nc": b"00000001"}
    quoted('a "b"')                                      ->  '"a \"b\""'

White space may stand around every part and may be folded (CR LF and a blank), elements of the list may be empty, names
are read in any case, `\x` inside quotes stands for x. Whether a value is quoted is not looked at: clients differ there
from each other and from the grammar, and it changes nothing.

Every repetition in the patterns is possessive, so the time is linear in the message.

Source: RFC 2831 sections 2.1.2 and 7.2; RFC 2616 section 2.1 for `#rule` and implied LWS.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from kafka_dt_protocol.sasl.errors import MalformedDigestMessage

_LWS: Final = rb"(?:\r\n[ \t]|[ \t])*+"
_TOKEN: Final = rb"[!#$%&'*+\-.0-9A-Z^_`a-z|~]++"
# TEXT is any octet but the control characters; white space is part of it, folded or not.
_QUOTED: Final = rb'"(?P<text>(?:[^"\\\x00-\x1F\x7F]|\t|\r\n[ \t]|\\[\x00-\x7F])*+)"'
_DIRECTIVE: Final = re.compile(
    rb"(?P<name>" + _TOKEN + rb")" + _LWS + rb"=" + _LWS + rb"(?:(?P<token>" + _TOKEN + rb")|" + _QUOTED + rb")" + _LWS
)
_GAP: Final = re.compile(rb"(?:,|\r\n[ \t]|[ \t])*+")
_FOLD: Final = re.compile(rb"\r\n[ \t]++")
_ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)


def parse_directives(what: str, message: bytes, once: Collection[bytes]) -> Mapping[bytes, bytes]:
    """Parse a message into its directives.

    Args:
        what: the name of the message, for the error
        message: the message as it came
        once: the names, in lower case, that may not come twice; of others the last one counts

    Returns:
        Names in lower case, values without quotes and escapes

    Raises:
        MalformedDigestMessage: it does not follow the grammar, or a directive comes twice
    """
    directives: dict[bytes, bytes] = {}
    position = _end_of_gap(message, 0)
    while position < len(message):
        found = _DIRECTIVE.match(message, position)
        if found is None:
            raise MalformedDigestMessage(what, "an element is not name=value")
        name = found["name"].lower()
        if name in once and name in directives:
            raise MalformedDigestMessage(what, "a directive comes twice")
        directives[name] = _unquoted(found["text"]) if found["token"] is None else found["token"]
        if message[found.end() : found.end() + 1] not in {b"", b","}:
            raise MalformedDigestMessage(what, "no comma after an element")
        position = _end_of_gap(message, found.end())
    return directives


def quoted(text: str) -> str:
    """Return a text as quoted-string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _end_of_gap(message: bytes, position: int) -> int:
    gap = _GAP.match(message, position)
    return gap.end() if gap else position


def _unquoted(text: bytes) -> bytes:
    # A fold never begins with an escaped CR: outside of folds the grammar has no LF.
    return _ESCAPE.sub(rb"\1", _FOLD.sub(b" ", text))
