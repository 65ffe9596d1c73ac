from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_dt.pipeline.errors import BadSuppressions
from kafka_dt.pipeline.report.networks import load_networks
from kafka_dt.pipeline.report.signs import Finding
from kafka_dt.pipeline.report.suppressions import Suppression, load_suppressions, suppress
from tests.support.findings import MONDAY, sighting

KINDS = ("stolen_token", "new_describer")
NEEDED = 'who = "Anna"\nwhy = "change 4711"\nuntil = 2026-12-31\n'


def loaded(folder: Path, *entries: str, networks: str = "") -> tuple[Suppression, ...]:
    path, named = folder / "suppressions.toml", folder / "networks.csv"
    path.write_text("".join(f"[[suppression]]\n{entry}\n" for entry in entries), encoding="utf-8")
    named.write_text(networks, encoding="utf-8")
    return load_suppressions(path, KINDS, load_networks(named))


def found(**fields: object) -> Finding:
    made = sighting("t1", "User:etl-orders", "10.20.7.9").finding
    assert isinstance(made, Finding)
    return replace(made, **fields)  # type: ignore[arg-type]


def covers(folder: Path, scope: str, finding: Finding, networks: str = "") -> bool:
    (entry,) = loaded(folder, NEEDED + scope, networks=networks)
    return entry.covers(finding)


@pytest.mark.parametrize(
    ("scope", "fits"),
    [
        ('kind = "stolen_token"', True),
        ('kind = ["new_describer"]', False),
        ('owner = "User:etl-orders"', True),
        ('owner = ["User:bob", "User:etl-*"]', True),
        ('owner = "User:etl"', False),
        ('owner = "User:etl.orders"', False),
        ('token = "t1"', True),
        ('token = "t2"', False),
        ('address = "10.20.7.9"', True),
        ('address = ["2001:db8::/32", "10.20.0.0/16"]', True),
        ('address = "10.21.0.0/16"', False),
        ('zone = "north"', True),
        ('zone = "south"', False),
        ("from = 2026-03-02", True),
        ("from = 2026-03-02T00:00:01Z", False),
        ("to = 2026-03-02T01:00:00", True),
        ("to = 2026-03-02T01:00:00+01:00", False),
        ('owner = "User:etl-*"\nkind = "new_describer"', False),
    ],
)
def test_an_entry_covers_what_fits_all_that_it_names(tmp_path: Path, scope: str, fits: bool) -> None:
    networks = "10.20.0.0/16, north, cluster\n10.21.0.0/16, south, cluster\n"
    assert covers(tmp_path, scope, found(), networks) is fits


def test_an_address_of_ipv6_and_one_that_is_mapped_are_in_their_networks(tmp_path: Path) -> None:
    assert covers(tmp_path, 'address = "2001:db8::/32"', found(address="2001:db8:0:1::7"))
    assert covers(tmp_path, 'address = "10.20.7.9"', found(address="::ffff:10.20.7.9"))
    assert not covers(tmp_path, 'address = "10.20.0.0/16"', found(address=None))
    assert not covers(tmp_path, 'address = "0.0.0.0/0"', found(address="unknown"))


def test_what_goes_on_after_a_maintenance_window_is_shown(tmp_path: Path) -> None:
    window = "from = 2026-03-01\nto = 2026-03-02"
    assert covers(tmp_path, window, found())
    assert not covers(tmp_path, window, found(last_seen=MONDAY + timedelta(days=1, hours=1)))


def test_an_entry_that_has_run_out_suppresses_nothing(tmp_path: Path) -> None:
    (entry,) = loaded(tmp_path, NEEDED + 'owner = "User:etl-orders"')
    last = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert suppress([found()], [entry], last)[0] == ()
    shown, suppressed = suppress([found()], [entry], last + timedelta(seconds=1))
    assert (shown, suppressed) == ((found(),), ())
    assert entry.has_run_out(last + timedelta(seconds=1))


def test_a_zone_is_without_the_networks_in_it_that_have_another_name(tmp_path: Path) -> None:
    networks = "10.0.0.0/8,company,office\n10.20.0.0/16,guests,foreign\n"
    assert not covers(tmp_path, 'zone = "company"', found(), networks)
    assert covers(tmp_path, 'zone = "guests"', found(), networks)
    assert covers(tmp_path, 'zone = "company"', found(address="10.21.0.1"), networks)


def test_suppressed_findings_take_no_place_of_others(tmp_path: Path) -> None:
    (entry,) = loaded(tmp_path, NEEDED + 'owner = "User:etl-*"')
    findings = [found(token_id=f"t{number}") for number in range(5)]
    others = [found(owner=f"User:{number}") for number in range(3)]
    shown, suppressed = suppress(iter([*findings, *others, found()]), [entry], MONDAY, most=2)
    assert shown == tuple(others[:2])
    assert [each.finding for each in suppressed] == [*findings, found()]


def test_of_several_entries_the_first_that_covers_a_finding_is_named(tmp_path: Path) -> None:
    entries = loaded(tmp_path, NEEDED + 'token = "t2"', NEEDED + 'token = "t1"', NEEDED + 'owner = "*"')
    shown, (suppressed,) = suppress([found()], entries, MONDAY)
    assert shown == ()
    assert suppressed.by is entries[1]


def test_what_an_entry_covers_is_said_for_people(tmp_path: Path) -> None:
    (entry,) = loaded(tmp_path, NEEDED + 'owner = ["User:a", "User:b"]\naddress = "10.0.0.0/8"\nfrom = 2026-03-01')
    assert entry.scope == "owner User:a or User:b, address 10.0.0.0/8, from 2026-03-01 00:00"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('why = "x"\nuntil = 2026-12-31\nowner = "User:a"', "suppression 1: 'who' is missing"),
        ('who = "x"\nwhy = "x"\nowner = "User:a"', "'until' is missing"),
        (NEEDED, "it would cover everything; name one of kind, owner, token, address, zone, from, to"),
        (NEEDED + 'owners = "User:a"', "'owners' is unknown"),
        (NEEDED + 'kind = "stolen"', "'stolen' is no kind of finding; write one of new_describer, stolen_token"),
        (NEEDED + 'address = "10.0.0.1/8"', "has host bits set"),
        (NEEDED + 'zone = "north"', "no network is called 'north'; name zones in the file of --networks"),
        (NEEDED + 'zone = "north"\naddress = "10.0.0.0/8"', "name an address or a zone, not both"),
        (NEEDED + "owner = 7", "'owner' has 7, which is no text"),
        (NEEDED + "owner = []", "'owner' is empty"),
        (NEEDED + 'from = "monday"', "'from' has 'monday'; write a date or a time of TOML"),
        (NEEDED + "from = 2026-03-02\nto = 2026-03-01", "'to' is not after 'from'"),
    ],
)
def test_an_entry_that_cannot_be_understood_is_named(tmp_path: Path, entry: str, says: str) -> None:
    with pytest.raises(BadSuppressions) as error:
        loaded(tmp_path, entry)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[suppression]\n", "Expected ']]'"),
        ('who = "x"\n', "it has who; each entry begins with [[suppression]]"),
        ("suppression = 7\n", "each entry begins with [[suppression]]"),
        ("suppression = [7]\n", "each entry begins with [[suppression]]"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "suppressions.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadSuppressions) as error:
        load_suppressions(path, KINDS, ())
    assert says in str(error.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "suppressions.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadSuppressions):
        load_suppressions(path, KINDS, ())
