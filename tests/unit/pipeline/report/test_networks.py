from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from kafka_dt.pipeline.errors import BadNetworks
from kafka_dt.pipeline.report.networks import ZoneKind, load_networks

FILE = """\
# network, name, kind
10.20.0.0/16, hadoop-north, cluster

10.20.7.0/24, "gateways, north", nat
2001:db8:7::/48,hadoop-north,cluster
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "networks.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_names_networks_of_both_kinds_of_addresses_the_smallest_first(tmp_path: Path) -> None:
    networks = load_networks(written(tmp_path, FILE))
    assert [(each.name, each.kind) for each in networks] == [
        ("gateways, north", ZoneKind.NAT),
        ("hadoop-north", ZoneKind.CLUSTER),
        ("hadoop-north", ZoneKind.CLUSTER),
    ]
    assert networks[0].first == int(ip_address("::ffff:10.20.7.0"))
    assert networks[0].last == int(ip_address("::ffff:10.20.7.255"))
    assert networks[2].first == int(ip_address("2001:db8:7::"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("10.20.0.0/16, north", "line 1: 10.20.0.0/16, north is not a network, a name and a kind"),
        ("10.20.0.0/16, , vpn", "is not a network, a name and a kind"),
        ("10.20.0.1/16, north, vpn", "has host bits set"),
        ("10.20.0.0/16, north, lan", "'lan' is no kind of network; write one of cluster, vpn, office, nat, foreign"),
        ("10.20.0.0/16, north, learned", "'learned' is no kind of network"),
    ],
)
def test_a_line_that_says_something_else_is_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(BadNetworks) as error:
        load_networks(written(tmp_path, line))
    assert says in str(error.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "networks.csv"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadNetworks):
        load_networks(path)
