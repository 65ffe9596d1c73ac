"""A sign of theft that only CONTRIBUTING.md and tests have: an address that logs in very often."""

from __future__ import annotations

from typing import Any

from tests.support.worked_examples import Example

_MODULE: Any = Example.of("A new sign of theft").module("kafka_dt/pipeline/report/signs/busy_address.py")

BUSY = _MODULE.BUSY_ADDRESS
BusyAddressThresholds = _MODULE.BusyAddressThresholds
