"""Text on its way in and out of SASL messages, without telling secrets to a traceback or a log.

Source: RFC 4616 and RFC 5802 (both carry UTF-8).
"""

from kafka_dt_protocol.errors import LocalProtocolError

_LONGEST_QUOTE = 200


def encode_text(text: str) -> bytes:
    """Return a name or password as UTF-8.

    Raises:
        LocalProtocolError: there is an unpaired surrogate in it; the error does not show the text
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass  # raised outside: the codec's error holds the whole text and must not be chained to ours
    raise LocalProtocolError("a name or password with an unpaired surrogate has no UTF-8 form")


def printable(text: str) -> str:
    """Return a peer's text fit for one line of a log: at most 200 characters, `?` for what does not print."""
    return "".join(character if character.isprintable() else "?" for character in text[:_LONGEST_QUOTE])
