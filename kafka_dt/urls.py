"""The URLs that settings may name: of an issuer's keys, of the place where tokens are got, and of webhooks.

if not usable_scheme(url): ...      # "https", "http" or "file"; empty if the URL cannot be used
opener = build_opener(NoRedirects())
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler

SCHEMES: Final = ("https", "http", "file")


def usable_scheme(url: str) -> str:
    """Return the scheme of a URL that has a host, or of a `file:` URL that has a path; empty if it is no such URL."""
    try:
        split = urlsplit(url)
    except ValueError:
        return ""
    place = split.path if split.scheme == "file" else split.hostname
    return split.scheme if split.scheme in SCHEMES and place else ""


class NoRedirects(HTTPRedirectHandler):
    """Follows no redirection: what is sent, such as a secret, is for the address that the settings name."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""
