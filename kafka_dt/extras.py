"""Say how a user installs an extra of this package, for errors about a missing one.

    f"GSSAPI needs the extra kerberos ({installed_by('kerberos')})"

There is no release that pip could find by name, so the command is one for a checkout.
"""

from __future__ import annotations


def installed_by(extra: str) -> str:
    """Return the command that adds an extra, to be run in a checkout with the pip of this interpreter."""
    return f"in a checkout of kafka-dt: pip install ./protocol '.[{extra}]'"
