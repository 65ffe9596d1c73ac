"""The error of a text that is not JAAS."""

from __future__ import annotations


class JaasError(ValueError):
    """A text is not JAAS, or not what Kafka accepts of it.

    Its text never quotes what was read: that may be a password.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        self.reason = reason
        self.position = position
        """Characters before the place where reading stopped; None when the text as a whole is wrong."""
        place = "" if position is None else f" at character {position + 1}"
        super().__init__(f"JAAS configuration not understood{place}: {reason}")
