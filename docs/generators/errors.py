"""The page about the errors that a node answers: made of the server's table and of what the client says about each.

Source: kafka_dt/server/errors.py, kafka_dt/client/errors.py.
"""

from __future__ import annotations

from inspect import getdoc
from typing import TYPE_CHECKING, Final

from kafka_dt.client.errors import LoginFailed, MechanismNotEnabled, RequestRefused, UnsupportedByServer
from kafka_dt.server.errors import CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kio.schema.errors import ErrorCode

    from kafka_dt.client.errors import TokenClientError

_HEAD: Final = """\
# Errors

A node answers requests and logins with Kafka's error codes. Look here for the meaning of a code at kafka-dt, and for
what you can do. Each error has a permanent link. `kafka_dt.client` raises an exception for each; its text says the same
as this page. Requests that a gateway forwards get the cluster's own errors, which are not here.

The reason of a failed login is not told to the client: it is in the log of the node and in the [audit
event](audit.md#why-a-login-was-refused).
"""


def page() -> str:
    """Return the page as Markdown."""
    codes = sorted({*CODES.values(), *_exceptions()}, key=lambda code: code.value)
    return "\n".join([_HEAD, *(line for code in codes for line in _entry(code))])


def _exceptions() -> dict[ErrorCode, type[TokenClientError]]:
    kinds: list[type[TokenClientError]] = [
        LoginFailed,
        MechanismNotEnabled,
        UnsupportedByServer,
        *RequestRefused.__subclasses__(),
    ]
    return {kind.code: kind for kind in kinds if kind.code is not None}


def _entry(code: ErrorCode) -> Iterator[str]:
    kind = _exceptions().get(code)
    meanings = [_first(error) for error, known in CODES.items() if known is code]
    if not meanings or (kind and not issubclass(kind, RequestRefused)):
        meanings.insert(0, _first(kind))
    yield f"(error-{code.name})=\n\n`{code.name.upper()}` ({code.value})\n: {' '.join(dict.fromkeys(meanings))}\n"
    advice = _sentences((kind.advice, kind.advice_on_expire)) if kind and issubclass(kind, RequestRefused) else ""
    raises = f"`kafka_dt.client` raises `{kind.__name__}`." if kind else ""
    if said := " ".join(filter(None, (advice, raises))):
        yield f"  {said}\n"


def _first(kind: type | None) -> str:
    return (getdoc(kind) or "").partition("\n")[0]


def _sentences(texts: Iterable[str]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts if text)
