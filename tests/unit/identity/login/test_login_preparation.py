"""What a login does while the client computes its proof, what it never does, and what decoys look like."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.newest_first import TooMuchWaits
from kafka_dt.identity.login.login import LoggedIn, Login, LoginRefused
from kafka_dt_protocol.sasl import Challenge, ScramClient, ScramCredential, ScramMechanism, derive_credential
from tests.support.server.fake_transport import turns
from tests.unit.identity.login.test_login import PASSWORD, TOKEN_ID, World, evaluated, scram, token

UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
SHA_256 = ScramMechanism.SHA_256
EXTENSIONS = ["", ",tokenauth=true", ",tokenauth=false"]


class WatchedWorld(World):
    """A world in which a derivation waits until it may go on, and is counted."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        super().__init__(executor)
        self.derived: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self._credentials = TokenCredentials(self._salts, executor, derive=self._derive)

    def _derive(self, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
        self.derived.append(password)
        assert self.go_on.wait(10)
        return derive_credential(mechanism, password, salt, iterations)


@pytest.fixture
def world() -> Iterator[WatchedWorld]:
    with ThreadPoolExecutor(2) as executor:
        made = WatchedWorld(executor)
        yield made
        made.go_on.set()


def begun(world: World, name: str = TOKEN_ID, extension: str = "") -> tuple[Login, dict[str, str]]:
    """A login that has been challenged, without waiting; and the attributes of the challenge."""
    login = world.login()
    login.begin(SHA_256)
    outcome = login.evaluate(f"n,,n={name},r=clientnonce{extension}".encode())
    assert isinstance(outcome, Challenge)
    return login, {part[0]: part[2:] for part in outcome.message.decode().split(",")}


def final(challenge: dict[str, str], name: str = TOKEN_ID, password: str = PASSWORD) -> bytes:
    client = ScramClient(ScramMechanism.SHA_256, name, password, "clientnonce")
    client.first()
    return client.challenge(",".join(f"{key}={value}" for key, value in challenge.items()).encode())


async def test_a_token_is_derived_while_the_client_computes(world: WatchedWorld) -> None:
    login, challenge = begun(world)
    assert world.derived == []
    login.prepare()
    await turns()
    assert world.derived == [PASSWORD]
    assert isinstance(await evaluated(login, final(challenge)), LoggedIn)
    assert world.derived == [PASSWORD]


async def test_a_token_logs_in_also_if_nothing_was_prepared(world: WatchedWorld) -> None:
    login, challenge = begun(world)
    assert isinstance(await evaluated(login, final(challenge)), LoggedIn)


async def test_a_proof_that_comes_early_waits_for_the_derivation(world: WatchedWorld) -> None:
    world.go_on.clear()
    login, challenge = begun(world)
    login.prepare()
    waiting = asyncio.ensure_future(evaluated(login, final(challenge)))
    await turns()
    assert not waiting.done()
    world.go_on.set()
    assert isinstance(await waiting, LoggedIn)


@pytest.mark.parametrize("prepared", [True, False])
async def test_nothing_of_the_exchange_is_kept_for_the_life_of_the_connection(
    world: WatchedWorld, *, prepared: bool
) -> None:
    login, challenge = begun(world)
    if prepared:
        login.prepare()
    assert login._exchange is not None
    exchange = weakref.ref(login._exchange)
    assert isinstance(await evaluated(login, final(challenge)), LoggedIn)
    gc.collect()
    assert exchange() is None


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("name", [UNKNOWN_ID, "nobody", "carol"])
async def test_nothing_is_derived_for_a_name_that_is_no_tokens(world: WatchedWorld, name: str, extension: str) -> None:
    login, challenge = begun(world, name, extension)
    login.prepare()
    await turns()
    assert isinstance(await evaluated(login, final(challenge, name, "wrong")), LoginRefused)
    assert world.derived == []


async def test_first_messages_without_a_proof_cost_one_derivation_for_each_token(world: WatchedWorld) -> None:
    for _ in range(20):
        login, _ = begun(world)
        login.prepare()
        await turns()
        login.abandon()
    await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD)
    assert world.derived == [PASSWORD]


async def test_what_is_to_be_derived_is_dropped_with_the_connection(world: WatchedWorld) -> None:
    world.go_on.clear()
    ids = [f"{number:0>21}A" for number in range(50)]
    world.tokens.cached |= {each: token(token_id=each) for each in ids}
    logins = [begun(world, each)[0] for each in ids]
    for login in logins:
        login.prepare()
    await turns()
    for login in logins:
        login.abandon()
    await turns()
    world.go_on.set()
    await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD)
    assert len(world.derived) <= 2 + 1, "two were under way"


async def test_a_login_whose_derivation_was_dropped_is_undecided(
    world: WatchedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drop(*_: object) -> ScramCredential:
        raise TooMuchWaits

    monkeypatch.setattr(world._credentials, "derive", drop)
    outcome = await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD)
    assert isinstance(outcome, LoginRefused)
    assert outcome.reason is RefusalReason.UNAVAILABLE


async def test_a_preparation_that_fails_and_is_not_asked_for_is_no_line_of_the_log(
    world: WatchedWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.tokens.stale = True
    login, _ = begun(world)
    login.prepare()
    await turns()
    login.abandon()
    del login
    await turns()
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("name", [TOKEN_ID, UNKNOWN_ID])
async def test_an_id_has_the_same_challenge_in_whatever_way_it_is_claimed(world: WatchedWorld, name: str) -> None:
    salts = {(challenge["s"], challenge["i"]) for _, challenge in (begun(world, name, each) for each in EXTENSIONS)}
    assert len(salts) == 1


@pytest.mark.parametrize("name", ["carol", "nobody"])
async def test_a_users_name_has_another_salt_when_it_is_called_a_token(world: WatchedWorld, name: str) -> None:
    """A known user's own salt is another one; if an unknown one's were not, that would tell them apart."""
    plain, as_token, as_user = (begun(world, name, each)[1] for each in EXTENSIONS)
    assert plain == as_user
    assert plain["s"] != as_token["s"]
    assert as_token["i"] == "4096"


def test_decoys_have_the_counts_of_users_as_often_as_users_have_them() -> None:
    salts, counts = Salts(b"secret"), [4096] * 70 + [8192] * 30
    decoys = Counter(salts.user(ScramMechanism.SHA_256, f"name {n}", counts).iterations for n in range(2_000))
    assert decoys.keys() == {4096, 8192}
    assert 500 < decoys[8192] < 700


def test_one_more_user_changes_hardly_any_decoy() -> None:
    salts, before = Salts(b"secret"), [4096] * 70 + [8192] * 30
    after = sorted([*before, 16384])

    def count(name: str, counts: list[int]) -> int:
        return salts.user(ScramMechanism.SHA_256, name, counts).iterations

    names = [f"name {n}" for n in range(1_000)]
    assert sum(count(name, before) != count(name, after) for name in names) < 50


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_decoys_are_those_of_every_node_with_the_secret_and_of_no_other(mechanism: ScramMechanism) -> None:
    one, same, other = Salts(b"secret"), Salts(b"secret"), Salts(b"another secret")
    assert one.user(mechanism, "nobody", [4096]) == same.user(mechanism, "nobody", [4096])
    assert one.token(mechanism, UNKNOWN_ID) == same.token(mechanism, UNKNOWN_ID)
    assert one.salt(mechanism, UNKNOWN_ID) == one.token(mechanism, UNKNOWN_ID).salt
    assert one.salt(mechanism, "nobody") != other.salt(mechanism, "nobody")
    assert len({one.salt(each, "nobody") for each in ScramMechanism}) == 2
    decoy = one.user(mechanism, "nobody", [4096])
    assert (len(decoy.stored_key), len(decoy.server_key)) == (mechanism.hash_bytes, mechanism.hash_bytes)
