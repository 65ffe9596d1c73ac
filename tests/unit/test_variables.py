import pytest

from kafka_dt.variables import providers, reason_against

NAMES = frozenset({"file", "env"})


def test_providers_are_those_that_are_named() -> None:
    assert providers({"config.providers": " file,env ,,"}) == NAMES
    assert providers({"config.providers.file.class": "FileConfigProvider"}) == frozenset()


@pytest.mark.parametrize("text", ["${file:/path:key}", "${env:NAME}", "a ${none:x} b${file:key}c", "${file:}"])
def test_a_variable_of_a_provider_is_a_reason_that_shows_its_name_alone(text: str) -> None:
    reason = reason_against(text, NAMES, "it here")
    assert reason is not None
    assert reason.endswith(":...} is a variable of config.providers, which kafka-dt does not read; write it here")


@pytest.mark.parametrize("text", ["", "${none:x}", "$file:x", "${file}", "${:x}", "file:/path", "${file:x"])
def test_other_texts_are_none(text: str) -> None:
    assert reason_against(text, NAMES, "it here") is None
    assert reason_against("${file:/path:key}", frozenset(), "it here") is None
