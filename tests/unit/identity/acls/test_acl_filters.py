"""Which ACLs a filter means."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.identity.acls.binding import (
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.filters import (
    AccessControlEntryFilter,
    AclBindingFilter,
    FilterIndex,
    ResourcePatternFilter,
)
from kafka_dt.tokens import Principal
from tests.support.identity.authorization import acl

USER, TOPIC = ResourceType.USER, ResourceType.TOPIC
LITERAL, PREFIXED, ANY, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY, PatternType.MATCH
NAMES = st.text(alphabet="ab*", min_size=1, max_size=3)
PATTERNS = st.builds(ResourcePattern, st.sampled_from([USER, TOPIC]), NAMES, st.sampled_from(PATTERN_TYPES))

CASES = [
    (ResourcePatternFilter(), "foo", LITERAL, True),
    (ResourcePatternFilter(USER), "foo", PREFIXED, True),
    (ResourcePatternFilter(TOPIC), "foo", LITERAL, False),
    (ResourcePatternFilter(ResourceType.UNKNOWN), "foo", LITERAL, False),
    (ResourcePatternFilter(name="foo"), "foo", LITERAL, True),
    (ResourcePatternFilter(name="foo"), "foo", PREFIXED, True),
    (ResourcePatternFilter(name="foo"), "*", LITERAL, False),
    (ResourcePatternFilter(name="foo"), "fo", PREFIXED, False),
    (ResourcePatternFilter(pattern_type=LITERAL), "foo", PREFIXED, False),
    (ResourcePatternFilter(pattern_type=PREFIXED), "foo", PREFIXED, True),
    (ResourcePatternFilter(pattern_type=PatternType.UNKNOWN), "foo", LITERAL, False),
    (ResourcePatternFilter(pattern_type=MATCH), "foo", PREFIXED, True),
    (ResourcePatternFilter(name="foo", pattern_type=MATCH), "foo", LITERAL, True),
    (ResourcePatternFilter(name="foo", pattern_type=MATCH), "*", LITERAL, True),
    (ResourcePatternFilter(name="foo", pattern_type=MATCH), "fo", PREFIXED, True),
    (ResourcePatternFilter(name="foo", pattern_type=MATCH), "fo", LITERAL, False),
    (ResourcePatternFilter(name="foo", pattern_type=MATCH), "food", PREFIXED, False),
    (ResourcePatternFilter(name="foo", pattern_type=MATCH), "*", PREFIXED, False),
    (ResourcePatternFilter(name="*", pattern_type=LITERAL), "*", LITERAL, True),
    (ResourcePatternFilter(name="*", pattern_type=LITERAL), "foo", LITERAL, False),
]


@pytest.mark.parametrize(("wanted", "name", "pattern_type", "matches"), CASES)
def test_a_pattern_is_matched(
    wanted: ResourcePatternFilter, name: str, pattern_type: PatternType, matches: bool
) -> None:
    assert wanted.matches(ResourcePattern(USER, name, pattern_type)) is matches


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (AccessControlEntryFilter(), True),
        (AccessControlEntryFilter(principal="User:alice"), True),
        (AccessControlEntryFilter(principal="User:*"), False),
        (AccessControlEntryFilter(principal="alice"), False),
        (AccessControlEntryFilter(host="10.0.0.7"), True),
        (AccessControlEntryFilter(host="*"), False),
        (AccessControlEntryFilter(host=""), False),
        (AccessControlEntryFilter(operation=AclOperation.READ), True),
        (AccessControlEntryFilter(operation=AclOperation.DESCRIBE), False),
        (AccessControlEntryFilter(operation=AclOperation.ALL), False),
        (AccessControlEntryFilter(operation=AclOperation.UNKNOWN), False),
        (AccessControlEntryFilter(permission_type=AclPermissionType.ALLOW), True),
        (AccessControlEntryFilter(permission_type=AclPermissionType.DENY), False),
    ],
)
def test_an_entry_is_matched(wanted: AccessControlEntryFilter, matches: bool) -> None:
    binding = acl(USER, "foo", "alice", AclOperation.READ, host="10.0.0.7")
    assert wanted.matches(binding.entry) is matches
    assert AclBindingFilter(entry=wanted).matches(binding) is matches
    assert not AclBindingFilter(ResourcePatternFilter(TOPIC), wanted).matches(binding)


@given(
    wanted=st.builds(
        ResourcePatternFilter,
        st.sampled_from([ResourceType.ANY, ResourceType.UNKNOWN, USER, TOPIC]),
        st.none() | NAMES,
        st.sampled_from(PatternType),
    ),
    pattern=PATTERNS,
)
def test_what_a_filter_names_is_all_that_it_can_match_and_matches(
    wanted: ResourcePatternFilter, pattern: ResourcePattern
) -> None:
    named = wanted.named()
    assert all(wanted.matches(each) for each in named)
    if named and wanted.matches(pattern):
        assert pattern in named


@given(name=NAMES, pattern=PATTERNS)
def test_match_means_the_patterns_that_a_resource_of_the_name_falls_under(name: str, pattern: ResourcePattern) -> None:
    wanted = ResourcePatternFilter(pattern.resource_type, name, MATCH)
    falls_under = name.startswith(pattern.name) if pattern.pattern_type is PREFIXED else pattern.name in (name, "*")
    assert wanted.matches(pattern) is falls_under


def test_only_a_filter_of_one_type_and_name_names_patterns() -> None:
    assert ResourcePatternFilter(USER, "foo").named() == tuple(
        ResourcePattern(USER, "foo", each) for each in PATTERN_TYPES
    )
    assert ResourcePatternFilter(USER, "foo", LITERAL).named() == (ResourcePattern(USER, "foo", LITERAL),)
    for kind, name, pattern_type in itertools.product([ResourceType.ANY, *RESOURCE_TYPES], [None], PatternType):
        assert ResourcePatternFilter(kind, name, pattern_type).named() == ()
    assert ResourcePatternFilter(name="foo").named() == ()
    assert ResourcePatternFilter(USER, "foo", MATCH).named() == ()


PRINCIPALS = st.sampled_from(["alice", "*", "bob"])
HOSTS = st.sampled_from(["*", "10.0.0.7"])
OPERATIONS = st.sampled_from([AclOperation.READ, AclOperation.ALL, AclOperation.UNKNOWN])
PERMISSIONS = st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY])
BINDINGS = st.builds(
    AclBinding,
    PATTERNS,
    st.builds(AccessControlEntry, PRINCIPALS.map(Principal.user), HOSTS, OPERATIONS, PERMISSIONS),
)
PATTERN_FILTERS = st.builds(
    ResourcePatternFilter,
    st.sampled_from([ResourceType.ANY, ResourceType.UNKNOWN, USER, TOPIC]),
    st.none() | NAMES | st.just(""),
    st.sampled_from(PatternType),
)
ENTRY_FILTERS = st.builds(
    AccessControlEntryFilter,
    st.none() | PRINCIPALS.map("User:{}".format) | st.just("alice"),
    st.none() | HOSTS,
    st.just(AclOperation.ANY) | OPERATIONS,
    st.just(AclPermissionType.ANY) | PERMISSIONS,
)
FILTERS = st.builds(AclBindingFilter, PATTERN_FILTERS, st.just(AccessControlEntryFilter()) | ENTRY_FILTERS)


@given(st.lists(FILTERS, max_size=12), st.lists(BINDINGS, max_size=8))
def test_an_index_of_filters_finds_the_first_that_matches_as_a_comparison_with_each_does(
    filters: list[AclBindingFilter], bindings: list[AclBinding]
) -> None:
    index = FilterIndex(filters)
    for binding in bindings:
        matching = [number for number, each in enumerate(filters) if each.matches(binding)]
        assert index.first(binding) == min(matching, default=None)
        assert index.concerns(binding.pattern) is any(each.pattern.matches(binding.pattern) for each in filters)
    named = [pattern for each in filters for pattern in each.pattern.named()]
    assert list(index.named()) == list(dict.fromkeys(named))


@pytest.mark.parametrize("pattern_type", [ANY, LITERAL, MATCH])
def test_no_acl_is_compared_with_each_of_thousands_of_filters(
    monkeypatch: pytest.MonkeyPatch, pattern_type: PatternType
) -> None:
    compared: list[ResourcePattern] = []
    monkeypatch.setattr(ResourcePatternFilter, "matches", lambda _, pattern: compared.append(pattern))
    names = [f"{number:04}" for number in range(5_000)]
    index = FilterIndex([AclBindingFilter(ResourcePatternFilter(TOPIC, name, pattern_type)) for name in names])
    for name in names:
        assert index.first(acl(TOPIC, name, "alice", AclOperation.READ)) == int(name)
    assert compared == []
