"""GSSAPI through the package of that name, which is MIT Kerberos: the one module that imports it.

It is loaded only where a listener offers GSSAPI, by `kafka_dt/identity/mechanisms/gssapi.py`: the package is an extra.

Limits: Kerberos alone, no SPNEGO; a client that stays anonymous is refused. The keytab is read again at each login, so
a new key counts at once. Calls block.

Source: RFC 2743, RFC 4121; gssapi's documentation.
"""

from __future__ import annotations

from typing import Any

import gssapi
from gssapi.exceptions import GSSError

from kafka_dt_protocol.sasl import GssContext, GssRefused


class KeytabUnusable(Exception):
    """There is no key for us; the message is one line."""


class _Context(gssapi.SecurityContext):  # type: ignore[misc] # the package is not there where types are checked
    """A context whose errors are raised at once, not kept for the next call."""

    __DEFER_STEP_ERRORS__ = False


class Acceptor:
    """Accepts clients with the keys of a keytab; the principal is our name in it, None for all names.

    Raises:
        KeytabUnusable: the file is not there, or has no key for that name.
    """

    def __init__(self, keytab: str, principal: str | None) -> None:
        try:
            name = None if principal is None else gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            self._credentials = gssapi.Credentials(
                name=name, usage="accept", mechs=[gssapi.MechType.kerberos], store={"keytab": f"FILE:{keytab}"}
            )
        except GSSError as error:
            raise KeytabUnusable(_words(error)) from error

    def context(self) -> GssContext:
        """Make the context of one login."""
        return _AcceptedContext(_Context(creds=self._credentials, usage="accept"))


class _AcceptedContext:
    """A `GssContext`."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.established = False
        self.initiator = ""

    def accept(self, token: bytes) -> bytes:
        try:
            answer: bytes | None = self._context.step(token)
            if self._context.complete:
                self._establish()
        except (GSSError, UnicodeError) as error:
            raise GssRefused(_words(error)) from error
        return answer or b""

    def wrap(self, message: bytes) -> bytes:
        try:
            wrapped: bytes = self._context.wrap(message, encrypt=False).message
        except GSSError as error:
            raise GssRefused(_words(error)) from error
        return wrapped

    def unwrap(self, message: bytes) -> bytes:
        try:
            unwrapped: bytes = self._context.unwrap(message).message
        except GSSError as error:
            raise GssRefused(_words(error)) from error
        return unwrapped

    def _establish(self) -> None:
        if self._context.actual_flags & gssapi.RequirementFlag.anonymity:
            raise GssRefused("the client stays anonymous")
        self.initiator = str(self._context.initiator_name)
        self.established = True


def default_realm() -> str:
    """Give the realm of `krb5.conf`, empty if there is none."""
    try:
        name = gssapi.Name("user", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
    except GSSError:
        return ""
    return str(name).rpartition("@")[2]


def _words(error: Exception) -> str:
    return " ".join(str(error).split())
