import kafka_dt_protocol


def test_each_public_name_exists_and_is_named_once() -> None:
    assert all(hasattr(kafka_dt_protocol, name) for name in kafka_dt_protocol.__all__)
    assert len(set(kafka_dt_protocol.__all__)) == len(kafka_dt_protocol.__all__)
