"""An alert to send, certificates for a server on this machine, and the settings by which clients trust it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafka_dt.pipeline.alerts import Alert
from kafka_dt.pipeline.cases import form_cases
from kafka_dt.pipeline.report.signs import Severity
from tests.support.findings import sighting
from tests.support.identity.tls_material import Identity, authority, leaf

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def alert() -> Alert:
    (case,) = form_cases([sighting(severity=Severity.HIGH)])
    return Alert(case, case.sightings)


@pytest.fixture(scope="session")
def root() -> Identity:
    return authority("alerts")


@pytest.fixture
def server_tls(root: Identity, tmp_path: Path) -> ssl.SSLContext:
    """The context of a server that calls itself localhost."""
    identity = leaf("localhost", root)
    path = tmp_path / "server.pem"
    path.write_text(identity.key_pem() + identity.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.fixture
def trust(root: Identity, tmp_path: Path) -> Mapping[str, str]:
    """`ssl.*` settings that trust the server."""
    path = tmp_path / "root.pem"
    path.write_text(root.certificate_pem)
    return {"ssl.truststore.location": str(path), "ssl.truststore.type": "PEM"}
