"""The URLs that settings may name: of an issuer's keys, and of the place where tokens are got.

if not usable_scheme(url): ...      # "https", "http" or "file"; empty if the URL cannot be used
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

SCHEMES: Final = ("https", "http", "file")


def usable_scheme(url: str) -> str:
    """Return the scheme of a URL that has a host, or of a `file:` URL that has a path; empty if it is no such URL."""
    try:
        split = urlsplit(url)
    except ValueError:
        return ""
    place = split.path if split.scheme == "file" else split.hostname
    return split.scheme if split.scheme in SCHEMES and place else ""
