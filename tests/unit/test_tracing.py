"""Whether a node traces its requests, as OpenTelemetry's variables say."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from kafka_dt.config import ConfigError
from kafka_dt.tracing import spans_wanted

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
COLLECTOR = {ENDPOINT: "http://collector:4318"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "tokens"},
        {ENDPOINT: ""},
        COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"},
        COLLECTOR | {"OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_traced_unless_that_is_asked_for(environment: dict[str, str]) -> None:
    assert spans_wanted(environment, "worker 0") is None


def test_an_exporter_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ConfigError, match="OTEL_TRACES_EXPORTER: 'zipkin' is not one of otlp, console, none"):
        spans_wanted({"OTEL_TRACES_EXPORTER": "zipkin"}, "worker 0")


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"traces need the extra otel \(.*\[otel\]"):
        spans_wanted(COLLECTOR, "worker 0")
