"""A transport over another one, which knows more of its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any


class OverTransport(asyncio.Transport):
    """Passes on what it is asked to do.

    Args:
        transport: what it stands for.
        extra: what it knows of the connection, by asyncio's names; None is not known.
    """

    def __init__(self, transport: asyncio.Transport, extra: Mapping[str, Any]) -> None:
        super().__init__(extra)
        self._transport = transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Give what is known of the connection."""
        found = super().get_extra_info(name)
        return self._transport.get_extra_info(name, default) if found is None else found

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send."""
        self._transport.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send, all at once."""
        self._transport.writelines(list_of_data)

    def write_eof(self) -> None:
        """Send nothing more."""
        self._transport.write_eof()

    def close(self) -> None:
        """Send what is left and close."""
        self._transport.close()

    def abort(self) -> None:
        """Close without sending what is left."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Say whether nothing more can be sent."""
        return self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        """Give how many bytes wait to be sent."""
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Take no more from the socket."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take from the socket again."""
        self._transport.resume_reading()
