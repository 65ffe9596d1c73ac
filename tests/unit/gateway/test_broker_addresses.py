"""Where clients reach the brokers behind the gateway, by port and by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.config import Endpoint, Listener, SecurityProtocol
from kafka_dt.gateway.addresses import NO_PORT, BrokerAddresses

ENDPOINT = Endpoint("SASL_SSL", "gateway.example.com", 443)


def listener(port: int = 9092, *, base: int | None = None, pattern: str = "", name: str = "SASL_SSL") -> Listener:
    return Listener(
        bind=Endpoint(name, "", port),
        advertised=Endpoint(name, "gateway.example.com", 0),
        security_protocol=SecurityProtocol.SASL_SSL,
        broker_port_base=base,
        broker_host_pattern=pattern,
    )


def test_by_port_each_broker_is_on_the_host_by_which_the_client_reaches_the_listener() -> None:
    by_port = listener(base=19000)
    addresses = BrokerAddresses([by_port])
    assert addresses.advertised(by_port, 0, ENDPOINT) == ("gateway.example.com", 19000)
    assert addresses.advertised(by_port, 17, ENDPOINT) == ("gateway.example.com", 19017)
    assert addresses.port(by_port, 17) == 19017


def test_by_name_each_broker_is_on_the_port_of_the_listener() -> None:
    by_name = listener(pattern="broker-{id}.example.com")
    addresses = BrokerAddresses([by_name])
    assert addresses.advertised(by_name, 2, ENDPOINT) == ("broker-2.example.com", 443)
    assert addresses.port(by_name, 2) is None


@pytest.mark.parametrize("broker_id", [5536, 2**31 - 1])
def test_a_broker_whose_port_is_none_is_advertised_where_nobody_can_connect(broker_id: int) -> None:
    by_port = listener(base=60000)
    addresses = BrokerAddresses([by_port])
    assert addresses.port(by_port, 5535) == 65535
    assert addresses.port(by_port, broker_id) is None
    assert addresses.advertised(by_port, broker_id, ENDPOINT) == ("gateway.example.com", NO_PORT)


def test_a_port_of_a_listener_is_no_brokers() -> None:
    by_port = listener(9092, base=9090)
    other = listener(9095, base=20000, name="OTHER")
    addresses = BrokerAddresses([by_port, other])
    assert [addresses.port(by_port, number) for number in range(7)] == [9090, 9091, None, 9093, 9094, None, 9096]


def test_the_ports_of_one_listener_end_where_those_of_the_next_begin() -> None:
    low, high = listener(1, base=9100, name="LOW"), listener(2, base=9200, name="HIGH")
    addresses = BrokerAddresses([high, low])
    assert addresses.port(low, 99) == 9199
    assert addresses.port(low, 100) is None
    assert addresses.port(high, 0) == 9200
    assert addresses.port(high, 5000) == 14200


def test_an_id_below_zero_has_no_port() -> None:
    by_port = listener(base=9100)
    assert BrokerAddresses([by_port]).port(by_port, -1) is None


@given(st.lists(st.integers(1, 65535), min_size=1, max_size=4, unique=True), st.data())
def test_no_two_brokers_share_a_port_whichever_listeners_they_are_on(bases: list[int], data: st.DataObject) -> None:
    made = [listener(number + 1, base=base, name=f"L{number}") for number, base in enumerate(bases)]
    addresses = BrokerAddresses(made)
    place = st.tuples(st.integers(0, len(made) - 1), st.integers(0, 70000))
    places = data.draw(st.lists(place, max_size=20, unique=True))
    ports = [port for number, broker_id in places if (port := addresses.port(made[number], broker_id)) is not None]
    assert len(ports) == len(set(ports))
    assert not set(ports) & {of.bind.port for of in made}


@pytest.mark.parametrize(
    ("name", "broker_id"),
    [
        ("broker-0.example.com", 0),
        ("broker-17.example.com", 17),
        ("BROKER-17.Example.COM", 17),
        ("broker-17.example.com.", 17),
        ("b3.other.example", 3),
        ("broker-2147483647.example.com", 2147483647),
        ("broker-2147483648.example.com", None),
        ("broker-99999999999.example.com", None),
        ("broker-017.example.com", None),
        ("broker-.example.com", None),
        ("broker--1.example.com", None),
        ("broker-17xexample.com", None),
        ("xbroker-17.example.com", None),
        ("broker-17.example.com.evil.example", None),
        ("broker-17.example.com\n", None),
        ("broker-\u0661.example.com", None),
        ("gateway.example.com", None),
        ("", None),
    ],
)
def test_the_name_of_a_broker_is_known_again(name: str, broker_id: int | None) -> None:
    listeners = [listener(pattern="broker-{id}.example.com"), listener(base=1), listener(pattern="b{id}.other.example")]
    assert BrokerAddresses(listeners).broker_of_name(name) == broker_id


@given(st.integers(0, 2**31 - 1))
def test_every_advertised_name_leads_to_its_broker(broker_id: int) -> None:
    by_name = listener(pattern="Broker-{id}.example.com")
    addresses = BrokerAddresses([by_name])
    host, _ = addresses.advertised(by_name, broker_id, ENDPOINT)
    assert addresses.broker_of_name(host) == broker_id


@given(st.text())
def test_any_name_is_a_broker_or_none(name: str) -> None:
    BrokerAddresses([listener(pattern="{id}.example.com")]).broker_of_name(name)
