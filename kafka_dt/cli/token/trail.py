"""Audit events of tokens that a command ends in ZooKeeper, where no node can record them.

    async with recorded_revocations(settings) as ended:
        ended([Result(token_id, ZnodeResult.CHANGED, note=owner)])

The events go where those of the settings' node go; their `node` is the node's name with `-revoke` and the process id.

Source: docs/audit.md.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.recorder import Origin
from kafka_dt.bulk import NOT_READABLE, Result, ZnodeResult
from kafka_dt.cli.node_options import now_ms
from kafka_dt.cli.output import counted
from kafka_dt.config import audit_settings
from kafka_dt.node.audit_trail import AuditTrail

if TYPE_CHECKING:
    from kafka_dt.audit.recorder import Recorder
    from kafka_dt.bulk import Report
    from kafka_dt.config import Settings

ORIGIN: Final = Origin(client_id="kafka-dt token revoke")


@asynccontextmanager
async def recorded_revocations(settings: Settings) -> AsyncIterator[Report]:
    """Give what hears results and records each token that was ended; without audit in the settings it records nothing.

    Raises:
        ConfigError: the settings of the audit cannot be used.
    """
    found = audit_settings(settings)
    if found is None:
        yield _forget
        return
    of_command = replace(found, node=f"{found.node}-revoke")
    trail = AuditTrail(of_command, os.getpid(), now_ms=now_ms, random_hex=secrets.token_hex)
    trail.start()
    try:
        yield lambda results: _record(trail.recorder, results)
    finally:
        await trail.close()
        if trail.lost:
            click.echo(f"Lost: {counted(trail.lost, 'audit event')}, which could not be written", err=True)


def _record(recorder: Recorder, results: Sequence[Result]) -> None:
    for result in results:
        if result.outcome is ZnodeResult.CHANGED:
            owner = result.note if isinstance(result.note, str) and result.note is not NOT_READABLE else None
            recorder.record(EventType.TOKEN_EXPIRED, Outcome.OK, ORIGIN, token_id=result.token_id, owner=owner)


def _forget(_: Sequence[Result]) -> None:
    """Hear of results where nothing is recorded."""
