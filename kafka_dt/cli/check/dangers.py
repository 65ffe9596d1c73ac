"""What is dangerous in settings with which a node starts: told by the settings and the files that they name."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from kafka_dt.audit.verification import without_chain
from kafka_dt.cli.check.finding import Finding
from kafka_dt.cli.output import counted
from kafka_dt.config import (
    SecretKeyFiles,
    TokenStore,
    audit_settings,
    listeners,
    metrics_settings,
    nearest_setting,
    upstream_client_properties,
    without_effect,
)
from kafka_dt.config.audit import DIR
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt.config.options.metrics import METRICS_PREFIX
from kafka_dt.config.secret_keys import CURRENT, PREVIOUS
from kafka_dt.identity.mechanisms import mechanisms_of
from kafka_dt.tls import TRUST_STORES, TlsError, read_identity
from kafka_dt.tokens import USER_TYPE, SecretKey
from kafka_dt.tokens.keyring import SHORT_CHARACTERS
from kafka_dt_protocol.sasl import OAUTHBEARER, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kafka_dt.config import Listener, Loaded, Settings

CERTIFICATE_DAYS: Final = 30
"""How long before the end of a certificate the command warns."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_IN_CLEAR: Final = {PLAIN: "passwords", OAUTHBEARER: "bearer tokens"}
"""Mechanisms that send a secret as it is."""
_SECOND_PRINCIPAL: Final = re.compile(rf",\s*{USER_TYPE}:")


def dangers(loaded: Loaded, now_ms: int) -> Iterator[Finding]:
    """Give what is dangerous in settings that a node would take; now_ms: the wall clock, milliseconds since 1970."""
    settings = loaded.settings
    yield from _without_effect(loaded)
    yield from _keys(settings)
    for listener in listeners(settings, mechanisms_of(settings)):
        yield from _open(listener)
        yield from _mechanisms(settings, listener)
        if listener.tls is not None:
            yield from _trust(listener.name, listener.tls.settings, listener.tls.key)
            yield from _certificate(listener.name, listener.tls.settings, listener.tls.key, now_ms)
    yield from _of_metrics(settings, now_ms)
    if settings.upstream_bootstrap_servers:
        shown = upstream_client_properties(settings)
        yield from _certificate("the gateway at the cluster", shown, UPSTREAM_PREFIX.__add__, now_ms)
    yield from _authorizer(settings)
    yield from _super_users(settings)
    yield from _audit_files(settings)


def unknown(keys: Iterable[str]) -> Iterator[Finding]:
    """Give the keys that there are not, with the setting that was probably meant by each."""
    for key in keys:
        nearest = nearest_setting(key)
        meant = f"; did you mean {nearest}?" if nearest else ""
        yield Finding(key, f"neither a broker nor kafka-dt has such a setting{meant}")


def _without_effect(loaded: Loaded) -> Iterator[Finding]:
    for key in loaded.unprotected:
        yield Finding(key, "kafka-dt does not support this security setting, and ignores it")
    for key in loaded.read_otherwise:
        yield Finding(key, r"a broker reads its value otherwise, as ISO-8859-1; write what is not ASCII as \uXXXX")
    for key in without_effect(loaded.settings):
        yield Finding(key, "it has no effect: the cluster behind the gateway has all tokens")
    yield from unknown(loaded.unknown)


def _keys(settings: Settings) -> Iterator[Finding]:
    if settings.token_store == TokenStore.UPSTREAM:
        return  # the cluster has them
    keys = SecretKeyFiles(settings).keys
    if keys is None:
        yield Finding(CURRENT, "it is not set: every request about tokens is refused")
        if settings.previous_secret_keys:
            yield Finding(PREVIOUS, f"it has no effect without {CURRENT}")
        return
    for key, texts in ((CURRENT, [keys.current]), (PREVIOUS, keys.previous)):
        if any(SecretKey(text).is_short for text in texts):
            yield Finding(key, f"a key has fewer than {SHORT_CHARACTERS} characters and could be guessed")


def _open(listener: Listener) -> Iterator[Finding]:
    if listener.bind.host in _LOOPBACK:
        return
    protocol = listener.security_protocol
    if not protocol.uses_sasl and (listener.tls is None or listener.tls.settings.get("ssl.client.auth") != "required"):
        yield Finding(
            "listeners",
            f"{listener.name} is open: who connects is User:ANONYMOUS without a login; use SASL_SSL, or SSL with "
            "ssl.client.auth=required",
        )
    for mechanism, secrets in _IN_CLEAR.items():
        if mechanism in listener.mechanisms and not protocol.uses_tls:
            yield Finding("listeners", f"{listener.name} takes {secrets} by {mechanism} unencrypted; use SASL_SSL")


def _mechanisms(settings: Settings, listener: Listener) -> Iterator[Finding]:
    for mechanism in mechanisms_of(settings).values():
        if mechanism.warning and mechanism.name in listener.mechanisms:
            yield Finding("sasl.enabled.mechanisms", f"{listener.name} offers {mechanism.name}; {mechanism.warning}")


def _trust(whose: str, tls: Mapping[str, str], key: Callable[[str], str]) -> Iterator[Finding]:
    """Look which client certificates a listener accepts; the arguments are those of `_certificate`."""
    asked = tls.get("ssl.client.auth", "none").strip().lower()
    if asked != "none" and not any(tls.get(name) for name in TRUST_STORES):
        yield Finding(
            key("ssl.client.auth"),
            f"{whose} accepts a client certificate with any subject, from any authority that this machine trusts; name "
            f"your own authority in {key(TRUST_STORES[0])}",
        )


def _of_metrics(settings: Settings, now_ms: int) -> Iterator[Finding]:
    metrics = metrics_settings(settings)
    if metrics is not None and metrics.tls is not None:
        yield from _trust("the metrics listener", metrics.tls, METRICS_PREFIX.__add__)
        yield from _certificate("the metrics listener", metrics.tls, METRICS_PREFIX.__add__, now_ms)


def _certificate(whose: str, tls: Mapping[str, str], key: Callable[[str], str], now_ms: int) -> Iterator[Finding]:
    """Look when a certificate ends; tls: Kafka's `ssl.*` settings by name, key: gives the full key of one of them."""
    try:
        entry = read_identity(tls)
    except TlsError:
        return  # the start is refused, with the reason
    if entry is None:
        return
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    end = min(certificate.not_valid_after_utc for certificate in entry.certificates)
    if end - now < timedelta(days=CERTIFICATE_DAYS):
        state = "has ended" if end < now else "ends soon"
        yield Finding(key(entry.setting), f"the certificate of {whose} {state}: {end:%Y-%m-%dT%H:%M:%SZ}")


def _authorizer(settings: Settings) -> Iterator[Finding]:
    if settings.token_store == TokenStore.UPSTREAM:
        return  # the cluster has the ACLs
    if not settings.authorizer_class_name:
        yield Finding(
            "authorizer.class.name",
            "it is not set: every user may create tokens for every other user; set "
            "kafka.security.authorizer.AclAuthorizer",
        )
    elif settings.allow_everyone_if_no_acl_found:
        yield Finding(
            "allow.everyone.if.no.acl.found",
            "every user may create tokens for a user without ACLs; set it to false, and super.users",
        )


def _super_users(settings: Settings) -> Iterator[Finding]:
    """Look for several principals that are one: a comma is part of a name, such as that of a certificate."""
    for principal in settings.super_users.split(";"):
        if _SECOND_PRINCIPAL.search(principal):
            yield Finding(
                "super.users", f"{principal.strip()!r} is one user; separate principals by semicolons, not commas"
            )


def _audit_files(settings: Settings) -> Iterator[Finding]:
    """Look for files that a strict node would continue, and that can never be verified."""
    audit = audit_settings(settings)
    if audit is None or audit.files is None or not audit.strict:
        return
    directory = audit.files.directory
    try:
        plain = without_chain(directory) if directory.exists() else []
    except OSError as error:
        yield Finding(DIR, f"its files cannot be read: {error.strerror}")
        return
    if plain:
        yield Finding(
            DIR,
            f"{directory} has {counted(len(plain), 'file')} of a node that was not strict ({plain[0]}), and "
            "kafka-dt audit verify reports each; name another folder, or stop that node and move its files away",
        )
