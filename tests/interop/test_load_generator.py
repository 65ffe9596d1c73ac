"""The load generator of the benchmarks does what a measurement needs, against a broker and against kafka-dt."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from benchmarks.credentials import write_credentials
from benchmarks.generator import Job, LoadFailed, LoadGenerator
from tests.interop.conftest import BROKER_IN_SOAK, Authority

pytestmark = pytest.mark.parametrize("authority", BROKER_IN_SOAK, indirect=True)

MECHANISM: Final = "SCRAM-SHA-512"
CONNECTIONS: Final = 120
TLS_CONNECTIONS: Final = 4
"""A multiple of the broker's threads, which take turns: so each connection comes to the same thread again."""
RATE: Final = 40
SECONDS: Final = 4
TLS_SECONDS: Final = 2


def test_connections_log_in_again_and_again(
    generator: LoadGenerator, authority: Authority, load_tokens: list[str], tmp_path: Path
) -> None:
    job = _job(generator, authority, load_tokens, tmp_path, connections=CONNECTIONS, rate=RATE)
    result = generator.run(job)["REAUTHENTICATE"]
    assert result.count > CONNECTIONS, "some did more than once"


def test_too_few_connections_to_log_in_again_fail_a_measurement(
    generator: LoadGenerator, authority: Authority, load_tokens: list[str], tmp_path: Path
) -> None:
    job = _job(generator, authority, load_tokens, tmp_path, connections=5)
    with pytest.raises(LoadFailed, match="too few connections: all 5 have just logged in again"):
        generator.run(job)


@pytest.mark.parametrize("resume", [False, True])
def test_a_connection_over_tls_resumes_the_session_of_the_one_before_it_only_if_it_is_told_to(
    generator: LoadGenerator, authority: Authority, resume: bool
) -> None:
    job = Job(
        address=authority.address("SASL_SSL"),
        tls=True,
        resume=resume,
        phases=("LOGIN",),
        connections=TLS_CONNECTIONS,
        rate=RATE,
        warm_ms=1_000,
        measure_ms=TLS_SECONDS * 1_000,
    )
    result = generator.run(job)["LOGIN"]
    if resume:  # each thread or worker of a server knows its own sessions only
        assert result.full_handshakes < 0.85 * result.count
    else:
        assert result.full_handshakes == result.count


def _job(
    generator: LoadGenerator,
    authority: Authority,
    load_tokens: list[str],
    folder: Path,
    *,
    connections: int,
    rate: float = 0,
) -> Job:
    credentials = write_credentials(folder / "credentials.tsv", generator, (authority.sasl, MECHANISM), load_tokens, {})
    return Job(
        address=authority.sasl,
        phases=("REAUTHENTICATE",),
        connections=connections,
        at_once=2,
        mechanism=MECHANISM,
        credentials=credentials,
        rate=rate,
        warm_ms=2_000,
        measure_ms=SECONDS * 1_000,
    )
