"""A listener's certificates follow their files."""

from __future__ import annotations

import logging
import os
import resource
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_dt.tls import ReloadingContext, TlsError
from tests.support.identity.tls_material import Identity, authority, leaf

ROOT = authority("Root")


def store(identity: Identity) -> str:
    return identity.key_pem() + identity.chain_pem


@pytest.fixture
def key_store(tmp_path: Path) -> Path:
    path = tmp_path / "server.pem"
    path.write_text(store(leaf("first", ROOT)))
    return path


def test_the_context_stays_while_the_files_do(key_store: Path) -> None:
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)})
    before = reloading.current
    assert not reloading.refresh()
    assert reloading.current is before


def test_a_changed_file_makes_a_new_context_once(key_store: Path) -> None:
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)})
    before = reloading.current
    key_store.write_text(store(leaf("second", ROOT)))
    assert reloading.refresh()
    assert reloading.current is not before
    assert not reloading.refresh()


def test_a_turned_link_is_a_change(tmp_path: Path, key_store: Path) -> None:
    other, link = tmp_path / "other.pem", tmp_path / "link.pem"
    other.write_text(store(leaf("second", ROOT)))
    link.symlink_to(key_store)
    reloading = ReloadingContext({"ssl.keystore.location": str(link)})
    turned = tmp_path / "turned"
    turned.symlink_to(other)
    turned.rename(link)
    assert reloading.refresh()


def test_the_trust_store_is_watched_too(tmp_path: Path, key_store: Path) -> None:
    trust = tmp_path / "trust.pem"
    trust.write_text(ROOT.certificate_pem)
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store), "ssl.truststore.location": str(trust)})
    trust.write_text(authority("Other").certificate_pem + ROOT.certificate_pem)
    assert reloading.refresh()


@pytest.mark.parametrize("broken", ["", "-----BEGIN CERTIFICATE-----\nx", None])
def test_a_broken_file_is_told_once_and_the_old_context_stays(key_store: Path, broken: str | None) -> None:
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)})
    before = reloading.current
    if broken is None:
        key_store.unlink()
    else:
        key_store.write_text(broken)
    with pytest.raises(TlsError, match=r"ssl\.keystore\.location"):
        reloading.refresh()
    assert not reloading.refresh()
    assert reloading.current is before
    key_store.write_text(store(leaf("third", ROOT)))
    assert reloading.refresh()


def test_the_log_says_whose_certificates_were_read_or_which_setting_is_wrong(
    key_store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)})
    reloading.follow("listener SSL", "listener.name.ssl.".__add__)
    assert caplog.messages == []
    for text in (store(leaf("second", ROOT)), "", ""):
        key_store.write_text(text)
        reloading.follow("listener SSL", "listener.name.ssl.".__add__)
    first, *told = caplog.messages
    assert first == "The certificates of listener SSL have been read again"
    wrong = (
        "The certificates of listener SSL stay, the new ones cannot be used: listener.name.ssl.ssl.keystore.location: "
    )
    assert all(each.startswith(wrong) for each in told)
    assert told


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Let this process open so many files and no more."""
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + count, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


@pytest.mark.parametrize("count", [0, 1])
def test_files_that_could_not_be_read_without_a_free_descriptor_are_read_later(key_store: Path, count: int) -> None:
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)})
    before = reloading.current
    key_store.write_text(store(leaf("second", ROOT)))
    with free_descriptors(count):
        with pytest.raises(TlsError, match="Too many open files"):
            reloading.refresh()
        assert not reloading.refresh()
    assert reloading.current is before
    assert reloading.refresh()
    assert not reloading.refresh()


def test_a_file_that_is_not_there_is_told_again_after_another_error(key_store: Path) -> None:
    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)})
    key_store.unlink()
    with pytest.raises(TlsError, match="No such file"):
        reloading.refresh()
    key_store.write_text("no store")
    with pytest.raises(TlsError, match="no PKCS12 or PEM store"):
        reloading.refresh()
    key_store.unlink()
    with pytest.raises(TlsError, match="No such file"):
        reloading.refresh()
    assert not reloading.refresh()


def test_a_change_while_the_files_are_read_at_the_start_is_seen(key_store: Path) -> None:
    def slow(_settings: Mapping[str, str]) -> ssl.SSLContext:
        os.utime(key_store, ns=(1, 1))
        return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    reloading = ReloadingContext({"ssl.keystore.location": str(key_store)}, slow)
    assert reloading.refresh()


def test_settings_without_files_never_change() -> None:
    identity = leaf("inline", ROOT)
    settings = {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem}
    assert not ReloadingContext(settings).refresh()
