import protocol


def test_each_public_name_exists_and_is_named_once() -> None:
    assert all(hasattr(protocol, name) for name in protocol.__all__)
    assert len(set(protocol.__all__)) == len(protocol.__all__)
