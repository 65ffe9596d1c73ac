"""Audit events of what a command changes in ZooKeeper, where no node can record it.

    async with recorder_of(settings, "user") as recorder:
        if recorder is not None:
            recorder.record(EventType.SCRAM_USER_CHANGED, Outcome.OK, origin_of("user delete"), user="alice")

The events go where those of the settings' node go. Their `node` is the node's name with the word of the command
(`-revoke`, `-user`, `-acl`) and the process id.

Source: docs/audit.md.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from kafka_dt.audit.recorder import Origin
from kafka_dt.cli.node_options import now_ms
from kafka_dt.cli.output import counted
from kafka_dt.config import audit_settings
from kafka_dt.node.audit_trail import AuditTrail

if TYPE_CHECKING:
    from kafka_dt.audit.recorder import Recorder
    from kafka_dt.config import Settings


def origin_of(command: str) -> Origin:
    """Say in an event which command it is of; `command` has its words: `user delete`."""
    return Origin(client_id=f"kafka-dt {command}")


@asynccontextmanager
async def recorder_of(settings: Settings, word: str) -> AsyncIterator[Recorder | None]:
    """Give what records the changes of a command; None without audit in the settings.

    word: of the command, for the name of the node in its events

    Raises:
        ConfigError: the settings of the audit cannot be used.
    """
    found = audit_settings(settings)
    if found is None:
        yield None
        return
    of_command = replace(found, node=f"{found.node}-{word}")
    trail = AuditTrail(of_command, os.getpid(), now_ms=now_ms, random_hex=secrets.token_hex)
    trail.start()
    try:
        yield trail.recorder
    finally:
        await trail.close()
        if trail.lost:
            click.echo(f"Lost: {counted(trail.lost, 'audit event')}, which could not be written", err=True)
