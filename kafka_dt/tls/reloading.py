"""A context that follows its files: certificates are renewed without a restart.

    context = ReloadingContext(settings)
    context.current              # for the next connection
    context.refresh()            # now and then, in a thread: it reads files

Connections keep the context they began with. Only files are looked at again; passwords and PEM text inside the
settings stay as they were at the start.

Source: kafka.server.DynamicBrokerConfig (there a request asks for the reload).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_dt.files import stamp
from kafka_dt.tls.contexts import server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from kafka_dt.files import Stamp

_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")


class ReloadingContext:
    """The context of a listener, or of a client that lives for long.

    settings: as `make` takes them.
    make: `server_context` or `client_context`.
    Raises TlsError for a setting that cannot be used.
    """

    current: ssl.SSLContext
    """What new connections use."""

    def __init__(
        self, settings: Mapping[str, str], make: Callable[[Mapping[str, str]], ssl.SSLContext] = server_context
    ) -> None:
        self._settings = settings
        self._make = make
        self._files = [Path(settings[key]) for key in _FILES if key in settings]
        # Taken before the files are read: a change in between is then seen as one.
        self._seen = self._stamps()
        self.current = make(settings)

    def refresh(self) -> bool:
        """Read the files again if one of them has changed since the last time.

        Returns whether there is a new context. Raises TlsError when the files cannot be used: the context stays as it
        is, and they are not tried again before they change once more.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        self.current = self._make(self._settings)
        return True

    def _stamps(self) -> list[Stamp]:
        return [stamp(path) for path in self._files]
