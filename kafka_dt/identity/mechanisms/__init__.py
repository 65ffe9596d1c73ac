"""The SASL mechanisms that a listener can offer: a row for each, in the order in which errors and the manual list them.

A mechanism is three things, one made of the other:

`Mechanism`      the row below: its name, its words for the manual, and how to read its settings and to open it
`OpenMechanism`  the mechanism on one listener of a running node, with keys, passwords or a thread pool of its own
`Exchange`       one login by it, which drives a machine of `kafka_dt_protocol.sasl`

    (listener, ...) = listeners(settings, MECHANISMS)                # `Mechanism.settings` reads each listener's keys
    opened = open_mechanisms(listener, MECHANISMS, resources)        # `Mechanism.open`, once for each listener
    login = Login(opened, accounts, now_ms)                          # for each connection
    login.begin("PLAIN")                                             # `OpenMechanism.begin` makes the exchange

Read `mechanism.py` first, then `passwords.py`, the shortest of the files that have the exchange of a mechanism. The
rows are all that the rest of the program knows of mechanisms; a test passes a table with a row more. CONTRIBUTING.md
has a worked example.

Source: org.apache.kafka.common.config.SaslConfigs; RFC 4616, RFC 5802, RFC 7628, RFC 4752, RFC 2831.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from kafka_dt.config import Settings, UpstreamIdentity
from kafka_dt.identity.mechanisms.digest_md5 import open_digest, refuse_users
from kafka_dt.identity.mechanisms.gssapi import kerberos_settings, open_kerberos
from kafka_dt.identity.mechanisms.mechanism import (
    Accounts,
    Mechanism,
    OpenMechanism,
    Relay,
    RelayedAnswer,
    RelayFailed,
    Resources,
    no_settings,
    open_mechanisms,
)
from kafka_dt.identity.mechanisms.oauthbearer import open_bearer
from kafka_dt.identity.mechanisms.passwords import jaas_users, open_passwords
from kafka_dt.identity.mechanisms.relayed import (
    name_claim,
    no_users,
    open_relayed_bearer,
    open_relayed_plain,
    open_relayed_scram,
)
from kafka_dt.identity.mechanisms.scram import open_scram
from kafka_dt.identity.oauth.settings import oauthbearer_settings
from kafka_dt.jaas import (
    KERBEROS_LOGIN_MODULE,
    OAUTHBEARER_LOGIN_MODULE,
    PLAIN_LOGIN_MODULE,
    SCRAM_LOGIN_MODULE,
)
from kafka_dt_protocol.sasl import DIGEST_MD5, GSSAPI, OAUTHBEARER, PLAIN, PlainServer, ScramMechanism

__all__ = [
    "MECHANISMS",
    "Accounts",
    "Mechanism",
    "OpenMechanism",
    "Relay",
    "RelayFailed",
    "RelayedAnswer",
    "Resources",
    "mechanisms_of",
    "open_mechanisms",
]

_SCRAM_USERS: Final = "the cluster's SCRAM users (`kafka-dt user create`, `kafka-configs.sh`)"

_ROWS: Final = (
    Mechanism(
        name=PLAIN,
        users='the users of the JAAS line (`user_alice="..."`)',
        takes_tokens=False,
        login_module=PLAIN_LOGIN_MODULE,
        settings=jaas_users,
        open=partial(open_passwords, lambda _: PlainServer()),
    ),
    Mechanism(
        name=ScramMechanism.SHA_256,
        users=_SCRAM_USERS,
        takes_tokens=True,
        login_module=SCRAM_LOGIN_MODULE,
        settings=no_settings,
        open=partial(open_scram, ScramMechanism.SHA_256),
    ),
    Mechanism(
        name=ScramMechanism.SHA_512,
        users=_SCRAM_USERS,
        takes_tokens=True,
        login_module=SCRAM_LOGIN_MODULE,
        settings=no_settings,
        open=partial(open_scram, ScramMechanism.SHA_512),
    ),
    Mechanism(
        name=OAUTHBEARER,
        users="the subjects of an issuer's bearer tokens (`sasl.oauthbearer.*`)",
        takes_tokens=False,
        login_module=OAUTHBEARER_LOGIN_MODULE,
        settings=oauthbearer_settings,
        open=open_bearer,
    ),
    Mechanism(
        name=GSSAPI,
        users="the principals of a Kerberos realm; needs the extra `kerberos`",
        takes_tokens=False,
        login_module=KERBEROS_LOGIN_MODULE,
        settings=kerberos_settings,
        open=open_kerberos,
    ),
    Mechanism(
        name=DIGEST_MD5,
        users="none: it is for tokens alone, and historic (RFC 6331)",
        takes_tokens=True,
        login_module=PLAIN_LOGIN_MODULE,
        settings=refuse_users,
        open=open_digest,
        warning="it is historic (RFC 6331), SCRAM is safer",
    ),
)

MECHANISMS: Final[Mapping[str, Mechanism[Any]]] = MappingProxyType({row.name: row for row in _ROWS})
"""The table, by name."""

_RELAYED: Final[Mapping[str, Mechanism[Any]]] = MappingProxyType(
    {
        **MECHANISMS,
        PLAIN: replace(MECHANISMS[PLAIN], settings=no_users, open=open_relayed_plain),
        **{each: replace(MECHANISMS[each], open=partial(open_relayed_scram, each)) for each in ScramMechanism},
        OAUTHBEARER: replace(MECHANISMS[OAUTHBEARER], settings=name_claim, open=open_relayed_bearer),
    }
)


def mechanisms_of(settings: Settings) -> Mapping[str, Mechanism[Any]]:
    """Give the table of a node: where a gateway relays logins, the cluster decides about those by its own users."""
    return _RELAYED if settings.upstream_identity == UpstreamIdentity.RELAY else MECHANISMS
