"""Kerberos for a client through the package `gssapi`, which is MIT Kerberos: the one module here that imports it.

It is loaded only for a login by GSSAPI: the package is an extra. Calls block.

Source: RFC 2743, RFC 4121, RFC 4752 section 3.1; gssapi's documentation.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import gssapi
from gssapi.exceptions import GSSError

from kafka_dt_protocol.sasl import GssRefused, choose_no_layer

if TYPE_CHECKING:
    from kafka_dt.client.kerberos import KerberosLogin


class _Context(gssapi.SecurityContext):  # type: ignore[misc] # the package is not there where types are checked
    """A context whose errors are raised at once, not kept for the next call."""

    __DEFER_STEP_ERRORS__ = False


class Initiator:
    """Logs in to one server; every method raises GssRefused.

    login: whose keys or tickets
    host: of the server, as its Kerberos name has it
    """

    def __init__(self, login: KerberosLogin, host: str) -> None:
        try:
            target = gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service)
            self._context: Any = _Context(
                name=target, creds=_credentials(login), usage="initiate", mech=gssapi.MechType.kerberos
            )
        except GSSError as error:
            raise GssRefused(_words(error)) from error

    @property
    def established(self) -> bool:
        """Whether both sides have proved their identities."""
        complete: bool = self._context.complete
        return complete

    def step(self, answer: bytes) -> bytes:
        """Take the server's last message, empty before the first; gives the next one, which may be empty."""
        try:
            message: bytes | None = self._context.step(answer or None)
        except GSSError as error:
            raise GssRefused(_words(error)) from error
        return message or b""

    def choose(self, offer: bytes) -> bytes:
        """Answer what security layers the server offers: none."""
        try:
            unwrapped: bytes = self._context.unwrap(offer).message
            wrapped: bytes = self._context.wrap(choose_no_layer(unwrapped), encrypt=False).message
        except GSSError as error:
            raise GssRefused(_words(error)) from error
        return wrapped


def _credentials(login: KerberosLogin) -> Any:
    name = None
    if login.principal is not None:
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
    store: dict[str, str] = {}
    if login.keytab is not None:
        # The tickets stay in the memory of this process.
        store = {"client_keytab": f"FILE:{login.keytab}", "ccache": f"MEMORY:kafka-dt-{secrets.token_hex(8)}"}
    elif login.ticket_cache is not None:
        store = {"ccache": f"FILE:{login.ticket_cache}"}
    return gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], store=store or None)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())
