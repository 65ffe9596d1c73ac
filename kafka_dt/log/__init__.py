"""Logging: one line an event, to standard error. Read `lines.py` first."""

from __future__ import annotations

from kafka_dt.log.lines import ComposedText, of_peer, set_up_logging

__all__ = ["ComposedText", "of_peer", "set_up_logging"]
