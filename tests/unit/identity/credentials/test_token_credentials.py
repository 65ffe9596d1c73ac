"""The SCRAM credentials of tokens that may be of several secret keys."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials, derive_token_credential
from kafka_dt.tokens import DelegationToken
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism, derive_credential
from tests.support.tokens.store_contract import new_token

SHA_256, SHA_512 = ScramMechanism
TOKEN = new_token()
OLD, NEW = b"\x01" * 64, b"\x02" * 64
OF_ONE, OF_BOTH = DelegationToken(TOKEN, OLD), DelegationToken(TOKEN, OLD, (NEW,))


class Derivations:
    def __init__(self) -> None:
        self.passwords: list[str] = []

    def __call__(self, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
        self.passwords.append(password)
        return derive_credential(mechanism, password, salt, iterations)


@pytest.fixture
def derivations() -> Derivations:
    return Derivations()


@pytest.fixture
def credentials(derivations: Derivations) -> Iterator[TokenCredentials]:
    with ThreadPoolExecutor(2) as executor:
        yield TokenCredentials(Salts(b"secret"), executor, derive=derivations)


def password(hmac: bytes) -> str:
    return base64.b64encode(hmac).decode()


@pytest.mark.parametrize("mechanism", ScramMechanism)
@given(hmac=st.binary(min_size=20, max_size=64), token_id=st.text())
@settings(deadline=None, max_examples=20)
def test_scramp_derives_the_keys_that_the_protocol_derives(
    mechanism: ScramMechanism, hmac: bytes, token_id: str
) -> None:
    salt = Salts(b"secret").salt(mechanism, token_id)
    expected = derive_credential(mechanism, password(hmac), salt, 4096)
    assert derive_token_credential(mechanism, password(hmac), salt, 4096) == expected


async def test_there_is_a_credential_for_each_key_with_one_salt(credentials: TokenCredentials) -> None:
    salt = Salts(b"secret").salt(SHA_512, TOKEN.token_id)
    found = await credentials.derive(SHA_512, OF_BOTH)
    expected = [derive_credential(SHA_512, password(hmac), salt, 4096) for hmac in (OLD, NEW)]
    assert [derive_credential(SHA_512, password(OLD), salt, 4096), *found.alternatives] == expected
    assert (found.stored_key, found.server_key) == (expected[0].stored_key, expected[0].server_key)
    assert credentials.find(SHA_512, OF_BOTH) == found


async def test_one_more_key_costs_one_more_derivation(credentials: TokenCredentials, derivations: Derivations) -> None:
    first = await credentials.derive(SHA_256, OF_ONE)
    assert first.alternatives == ()
    assert credentials.find(SHA_256, OF_BOTH) is None

    await credentials.derive(SHA_256, OF_BOTH)

    assert derivations.passwords == [password(OLD), password(NEW)]
    assert credentials.find(SHA_256, OF_ONE) is first


async def test_all_who_log_in_at_the_same_time_share_the_derivations(
    credentials: TokenCredentials, derivations: Derivations
) -> None:
    found = await asyncio.gather(*(credentials.derive(SHA_256, OF_BOTH) for _ in range(10)))
    assert len(set(found)) == 1
    assert sorted(derivations.passwords) == sorted((password(OLD), password(NEW)))
