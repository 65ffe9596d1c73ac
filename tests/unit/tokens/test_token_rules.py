"""Every rule of create, renew, expire and describe, as a broker was measured to apply them (and, marked, where not)."""

import hmac as python_hmac
from base64 import urlsafe_b64decode
from collections.abc import Collection

import pytest

from kafka_dt.tokens import (
    DelegationToken,
    InvalidPrincipalType,
    Principal,
    StoreUnavailable,
    Token,
    TokenError,
    TokenExpired,
    TokenLimits,
    TokenNotFound,
    TokenOwnerMismatch,
    TokensDisabled,
    TokenTooLarge,
)
from kafka_dt.tokens.changes import MAX_TOKEN_BYTES
from tests.support.tokens.nodes import (
    ALICE,
    BOB,
    CAROL,
    DAY,
    HOUR,
    MALLORY,
    START,
    Cluster,
    Node,
    everything,
    nothing_more,
)

INT64_MAX = 2**63 - 1


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def node(cluster: Cluster) -> Node:
    node = cluster.node()
    await node.manager.start()
    return node


async def create(node: Node, *renewers: Principal, owner: Principal = ALICE, lifetime_ms: int = -1) -> DelegationToken:
    return await node.manager.create(owner, ALICE, renewers, lifetime_ms)


class TestCreate:
    async def test_the_id_is_that_of_a_random_uuid_in_base64url(self, node: Node) -> None:
        token = (await create(node)).token
        assert len(token.token_id) == 22
        uuid = urlsafe_b64decode(token.token_id + "==")
        assert len(uuid) == 16
        assert (uuid[6] >> 4, uuid[8] >> 6) == (4, 0b10)

    async def test_the_hmac_is_that_of_the_id_with_the_secret_key(self, node: Node) -> None:
        created = await create(node)
        expected = python_hmac.digest(b"the secret key", created.token.token_id.encode(), "sha512")
        assert created.hmac == expected
        assert len(expected) == 64

    @pytest.mark.parametrize(
        ("lifetime_ms", "max_after_ms", "expiry_after_ms"),
        [
            (2 * DAY, 2 * DAY, DAY),
            (7 * DAY, 7 * DAY, DAY),
            (HOUR, HOUR, HOUR),
            (1, 1, 1),
            (0, 7 * DAY, DAY),
            (-1, 7 * DAY, DAY),
            (-2, 7 * DAY, DAY),
            (-(2**63), 7 * DAY, DAY),
            (7 * DAY + 1, 7 * DAY, DAY),
            (INT64_MAX, 7 * DAY, DAY),
        ],
    )
    async def test_lifetimes(self, node: Node, lifetime_ms: int, max_after_ms: int, expiry_after_ms: int) -> None:
        token = (await create(node, lifetime_ms=lifetime_ms)).token
        assert token.issue_timestamp_ms == START
        assert token.max_timestamp_ms == START + max_after_ms
        assert token.expiry_timestamp_ms == START + expiry_after_ms

    async def test_timestamps_end_with_int64_where_a_broker_overflows(self) -> None:
        node = Cluster(limits=TokenLimits(max_lifetime_ms=INT64_MAX, expiry_time_ms=INT64_MAX)).node()
        token = (await create(node)).token
        assert (token.max_timestamp_ms, token.expiry_timestamp_ms) == (INT64_MAX, INT64_MAX)
        assert not token.is_expired(START)

    async def test_renewers_keep_their_order_and_duplicates(self, node: Node) -> None:
        renewers = (BOB, Principal.user(""), ALICE, BOB, Principal.user("ä\0 \n,:"))
        assert (await create(node, *renewers)).token.renewers == renewers

    async def test_renewers_are_many_but_not_more_than_can_be_stored(self, cluster: Cluster, node: Node) -> None:
        many = (Principal.user("r" * 995),) * 900
        assert (await create(node, *many)).token.renewers == many
        changes = list(cluster.database.changed_ids)
        for connected in (True, False):
            node.store.connected = connected
            with pytest.raises(TokenTooLarge) as refused:
                await create(node, *many, *many)
            assert (refused.value.size, refused.value.limit) == (1_800_020, MAX_TOKEN_BYTES)
        assert cluster.database.changed_ids == changes

    @pytest.mark.parametrize("renewer_type", ["Group", "user", "USER", "", "User "])
    async def test_a_renewer_is_a_user(self, cluster: Cluster, node: Node, renewer_type: str) -> None:
        renewer = Principal(renewer_type, "bob")
        with pytest.raises(InvalidPrincipalType) as refused:
            await create(node, BOB, renewer)
        assert (refused.value.principal, refused.value.renewer) == (renewer, True)
        assert not cluster.database.changed_ids

    @pytest.mark.parametrize("owner_type", ["", ":", "Us:er", "User:", ":User"])
    async def test_an_owner_whose_type_cannot_be_told_from_its_name_is_refused(
        self, cluster: Cluster, node: Node, owner_type: str
    ) -> None:
        owner = Principal(owner_type, "bob")
        with pytest.raises(InvalidPrincipalType) as refused:
            await create(node, BOB, owner=owner)
        assert (refused.value.principal, refused.value.renewer) == (owner, False)
        assert not cluster.database.changed_ids

    @pytest.mark.parametrize(
        "owner",
        [Principal("Group", "ops"), Principal(" ", ""), Principal.user(" \t\x00:"), Principal.user("x" * 20_000)],
        ids=["other type", "empty name", "control characters", "long"],
    )
    async def test_an_owner_may_have_any_other_type_and_any_name(
        self, cluster: Cluster, node: Node, owner: Principal
    ) -> None:
        created = await node.manager.create(owner, ALICE, (), -1)
        assert (created.token.owner, created.token.requester) == (owner, ALICE)
        assert cluster.stored(created.token.token_id) == created.token

    async def test_an_id_that_is_taken_is_drawn_again(self, cluster: Cluster, node: Node) -> None:
        first = await create(node)
        other = Cluster(cluster.database).node()  # its random generator begins anew
        assert (await create(other, owner=BOB)).token.token_id != first.token.token_id
        assert cluster.stored(first.token.token_id) == first.token

    async def test_a_random_generator_that_repeats_itself_is_given_up(self) -> None:
        cluster = Cluster(random_bytes=bytes)
        node = cluster.node()
        await create(node)
        with pytest.raises(StoreUnavailable, match="taken"):
            await create(node)


class TestRenewAndExpire:
    @pytest.mark.parametrize(
        ("period_ms", "expiry_after_ms"),
        [
            (0, 0),
            (1, 1),
            (HOUR, HOUR),
            (3 * DAY, 3 * DAY),
            (6 * DAY, 6 * DAY),
            (6 * DAY + 1, 6 * DAY),
            # A broker's sum overflows here: its token has expired with a negative timestamp.
            (INT64_MAX, 6 * DAY),
        ],
    )
    async def test_a_period_counts_from_now_and_ends_with_the_max_timestamp(
        self, cluster: Cluster, period_ms: int, expiry_after_ms: int
    ) -> None:
        node = cluster.node()
        for change in (node.manager.renew, node.manager.expire):
            created = await create(node)
            cluster.clock.now_ms += DAY
            now_ms = cluster.clock.now_ms

            assert await change(ALICE, created.hmac, period_ms) == now_ms + expiry_after_ms

            stored = cluster.stored(created.token.token_id)
            assert stored is not None
            assert stored.expiry_timestamp_ms == now_ms + expiry_after_ms
            assert node.cache.get(stored.token_id) == DelegationToken(stored, created.hmac)

    @pytest.mark.parametrize("period_ms", [-1, -2, -(2**63)])
    async def test_a_negative_period_renews_by_the_default(self, cluster: Cluster, node: Node, period_ms: int) -> None:
        created = await create(node)
        cluster.clock.now_ms += HOUR
        assert await node.manager.renew(ALICE, created.hmac, period_ms) == START + HOUR + DAY

    @pytest.mark.parametrize("period_ms", [-1, -2, -(2**63)])
    async def test_a_negative_period_deletes_at_once(self, cluster: Cluster, node: Node, period_ms: int) -> None:
        created = await create(node)
        cluster.clock.now_ms += HOUR
        assert await node.manager.expire(ALICE, created.hmac, period_ms) == START + HOUR
        assert cluster.stored(created.token.token_id) is None
        assert node.manager.find(created.token.token_id) is None

    async def test_an_expired_token_can_be_deleted_once(self, cluster: Cluster, node: Node) -> None:
        created = await create(node)
        cluster.clock.now_ms += 8 * DAY
        assert await node.manager.expire(ALICE, created.hmac, -1) == cluster.clock.now_ms
        with pytest.raises(TokenNotFound):
            await node.manager.expire(ALICE, created.hmac, -1)

    @pytest.mark.parametrize(
        ("requester", "allowed"),
        [
            (ALICE, True),
            (BOB, True),
            (CAROL, False),
            (MALLORY, False),
            (Principal("Group", "alice"), False),
            (Principal.user("Bob"), False),
        ],
        ids=str,
    )
    async def test_owner_and_renewers_may_and_the_requester_may_not(
        self, node: Node, requester: Principal, allowed: bool
    ) -> None:
        created = await node.manager.create(ALICE, CAROL, [BOB], -1)
        manager = node.manager
        for change, period_ms in ((manager.renew, -1), (manager.renew, 5), (manager.expire, 5), (manager.expire, -1)):
            if allowed:
                await change(requester, created.hmac, period_ms)
            else:
                with pytest.raises(TokenOwnerMismatch) as refused:
                    await change(requester, created.hmac, period_ms)
                assert refused.value.requester == requester

    async def test_a_super_user_may_expire_any_token_and_renew_none(self, node: Node) -> None:
        created = await create(node)
        with pytest.raises(TokenOwnerMismatch):
            await node.manager.renew(MALLORY, created.hmac, -1)
        assert await node.manager.expire(MALLORY, created.hmac, 5, by_super_user=True) == START + 5
        assert await node.manager.expire(MALLORY, created.hmac, -1, by_super_user=True) == START

    @pytest.mark.parametrize("change", ["first bit", "last bit", "cut", "longer", "empty", "text"])
    async def test_an_hmac_has_to_be_exact(self, node: Node, change: str) -> None:
        hmac = (await create(node)).hmac
        wrong = {
            "first bit": bytes([hmac[0] ^ 1]) + hmac[1:],
            "last bit": hmac[:-1] + bytes([hmac[-1] ^ 1]),
            "cut": hmac[:-1],
            "longer": hmac + b"\0",
            "empty": b"",
            "text": hmac.hex().encode(),
        }[change]
        for request in (node.manager.renew, node.manager.expire):
            with pytest.raises(TokenNotFound):
                await request(ALICE, wrong, -1)

    @pytest.mark.parametrize("lifetime_ms", [-1, HOUR], ids=["expiry passed", "max passed"])
    async def test_an_expired_token_is_not_renewed(self, cluster: Cluster, node: Node, lifetime_ms: int) -> None:
        created = await create(node, lifetime_ms=lifetime_ms)
        cluster.clock.now_ms = created.token.expiry_timestamp_ms
        await node.manager.expire(ALICE, created.hmac, 0)
        cluster.clock.now_ms += 1
        for request in (node.manager.renew, node.manager.expire):
            with pytest.raises(TokenExpired) as refused:
                await request(ALICE, created.hmac, 5)
            assert refused.value.token_id == created.token.token_id

    async def test_a_refusal_writes_nothing(self, cluster: Cluster, node: Node) -> None:
        created = await create(node)
        with pytest.raises(TokenOwnerMismatch):
            await node.manager.expire(MALLORY, created.hmac, -1)
        with pytest.raises(TokenNotFound):
            await node.manager.expire(ALICE, bytes(64), -1)
        assert cluster.database.changed_ids == [created.token.token_id]


class TestOrderOfChecks:
    async def test_create_checks_the_renewers_before_it_says_that_tokens_are_disabled(self, cluster: Cluster) -> None:
        manager = cluster.node(secret_key=None).manager
        with pytest.raises(InvalidPrincipalType):
            await manager.create(ALICE, ALICE, [Principal("Group", "x")], -1)
        with pytest.raises(TokensDisabled):
            await manager.create(ALICE, ALICE, [BOB], -1)

    async def test_without_a_key_everything_is_refused_and_the_store_is_not_asked(self, cluster: Cluster) -> None:
        created = await create(cluster.node())
        node = cluster.node(secret_key=None)
        node.store.connected = False
        node.store.stale_ms = DAY
        await node.manager.start()
        assert not node.manager.enabled
        for request in (
            node.manager.renew(ALICE, created.hmac, -1),
            node.manager.expire(ALICE, created.hmac, -1),
            node.describe(ALICE, None, everything),
            node.describe(ALICE, [], everything),
        ):
            with pytest.raises(TokensDisabled):
                await request
        assert node.manager.find(created.token.token_id) is None
        assert await node.manager.lookup(created.token.token_id) is None
        assert await node.manager.remove_expired() == 0

    @pytest.mark.parametrize(
        ("wrong", "refusal"),
        [
            ({"hmac", "requester", "expired"}, TokenNotFound),
            ({"requester", "expired"}, TokenOwnerMismatch),
            ({"expired"}, TokenExpired),
            (set(), None),
        ],
        ids=["all is wrong", "not the requester", "expired", "nothing is wrong"],
    )
    async def test_the_token_is_found_then_its_owner_checked_then_its_expiry(
        self, cluster: Cluster, node: Node, wrong: set[str], refusal: type[TokenError] | None
    ) -> None:
        created = await create(node)
        hmac = bytes(64) if "hmac" in wrong else created.hmac
        requester = MALLORY if "requester" in wrong else ALICE
        cluster.clock.now_ms += 2 * DAY if "expired" in wrong else 0
        for request in (node.manager.renew, node.manager.expire):
            if refusal is None:
                await request(requester, hmac, 5)
            else:
                with pytest.raises(refusal):
                    await request(requester, hmac, 5)


GROUP_ALICE = Principal("Group", "alice")


class TestDescribe:
    @pytest.fixture
    async def tokens(self, node: Node) -> dict[str, DelegationToken]:
        return {
            "alice": await create(node),
            "alice, renewed by bob": await create(node, BOB),
            "bob": await node.manager.create(BOB, BOB, (), -1),
            "group alice": await node.manager.create(GROUP_ALICE, GROUP_ALICE, (), -1),
            "carol, asked for by alice": await create(node, owner=CAROL),
        }

    @pytest.mark.parametrize(
        ("owners", "described"),
        [
            (None, {"alice", "alice, renewed by bob", "bob", "group alice", "carol, asked for by alice"}),
            ([], set()),
            ([ALICE], {"alice", "alice, renewed by bob", "carol, asked for by alice"}),
            ([BOB], {"alice, renewed by bob", "bob"}),
            ([CAROL], {"carol, asked for by alice"}),
            ([ALICE, BOB, ALICE], {"alice", "alice, renewed by bob", "bob", "carol, asked for by alice"}),
            ([GROUP_ALICE], {"group alice"}),
            ([Principal.user("Alice")], set()),
            ([MALLORY], set()),
        ],
    )
    async def test_owners_select_by_owner_renewer_and_requester(
        self,
        node: Node,
        tokens: dict[str, DelegationToken],
        owners: Collection[Principal] | None,
        described: set[str],
    ) -> None:
        found = await node.describe(MALLORY, owners, everything)
        assert {name for name, token in tokens.items() if token in found} == described
        assert len(found) == len(described)

    @pytest.mark.parametrize(
        ("requester", "described"),
        [
            (ALICE, {"alice", "alice, renewed by bob", "carol, asked for by alice"}),
            (BOB, {"alice, renewed by bob", "bob"}),
            (CAROL, {"carol, asked for by alice"}),
            (GROUP_ALICE, {"group alice"}),
            (MALLORY, set()),
        ],
        ids=["Alice", "Bob", "Carol", "group Alice", "Mallory"],
    )
    async def test_owner_renewers_and_requester_see_their_tokens(
        self, node: Node, tokens: dict[str, DelegationToken], requester: Principal, described: set[str]
    ) -> None:
        found = await node.describe(requester, None, nothing_more)
        assert {name for name, token in tokens.items() if token in found} == described

    async def test_others_are_asked_about_once_each(self, node: Node, tokens: dict[str, DelegationToken]) -> None:
        asked: list[Token] = []

        def visible(token: Token) -> bool:
            asked.append(token)
            return token.owner == BOB

        found = await node.describe(ALICE, None, visible)

        assert asked == [tokens[name].token for name in ("bob", "group alice")]
        seen = ("alice", "alice, renewed by bob", "bob", "carol, asked for by alice")
        assert found == [tokens[name] for name in seen]

    async def test_an_expired_token_is_described_until_it_is_purged(self, cluster: Cluster, node: Node) -> None:
        created = await create(node)
        cluster.clock.now_ms += 8 * DAY
        assert await node.describe(ALICE, None, nothing_more) == [created]
        assert await node.manager.remove_expired() == 1
        assert await node.describe(ALICE, None, nothing_more) == []
