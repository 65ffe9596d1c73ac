"""Values in the commands that a report suggests.

Values come from events, and clients choose some of these freely. So each is quoted for a shell, and a value with
characters that do not print is in no command at all.

Source: POSIX.1-2017, "Shell Command Language", quoting
"""

from __future__ import annotations

import shlex


def word(text: str | None) -> str | None:
    """Quote a value as one word of a shell's command; None if it is empty or cannot be shown as it is."""
    return shlex.quote(text) if text and text.isprintable() else None
