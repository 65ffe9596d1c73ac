"""A principal, as Kafka writes it (`User:alice`): the type and the name that authorization knows.

A principal lives beside the tokens and not in `identity/`, because the owner, the requester and the renewers of a
token are principals and imports point from `identity` to `tokens`. Equality is exact: type and name, letter case
included, so `Group:alice` is not `User:alice`.

Source: org.apache.kafka.common.security.auth.KafkaPrincipal,
org.apache.kafka.common.utils.SecurityUtils.parseKafkaPrincipal
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

USER_TYPE: Final = "User"
"""The type of everybody who can log in, and the only type a renewer may have."""
_LONGEST_QUOTE: Final = 100
"""How much of a text that is no principal an error shows, in characters: an answer takes 32767 bytes of an error."""


@dataclass(eq=False)
class InvalidPrincipal(ValueError):
    """A text that is not of the form `Type:name`."""

    text: str

    def __str__(self) -> str:
        return f"Expected a principal in the form Type:name, got {self.text[:_LONGEST_QUOTE]!r}."


@dataclass(frozen=True, slots=True)
class Principal:
    """A type and a name; either may be any text, also an empty one."""

    type: str
    """`User` for a client that logged in; other types exist only where a request or a znode names them."""
    name: str
    """The name, without quoting."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @property
    def has_valid_type(self) -> bool:
        """Whether `parse` gives an equal principal back from the text, and the type is not empty.

        `Us:er` with the name `x` has the same text as `Us` with the name `er:x`. ZooKeeper and ACLs keep only the text.
        So a principal with a colon in its type is another principal than the one that an ACL about its text denies.
        """
        return bool(self.type) and ":" not in self.type

    @classmethod
    def user(cls, name: str) -> Principal:
        """Return the principal of the user `name`."""
        return cls(USER_TYPE, name)

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Read `Type:name`; the first colon separates, the name may hold more of them.

        Raises:
            InvalidPrincipal: there is no colon in `text`.
        """
        principal_type, colon, name = text.partition(":")
        if not colon:
            raise InvalidPrincipal(text)
        return cls(principal_type, name)


ANONYMOUS: Final = Principal(USER_TYPE, "ANONYMOUS")
"""Who talks on a listener without authentication."""
