"""The page about the signs of theft: made of the table of signs and of the docstrings of their modules.

Source: kafka_dt/pipeline/report/signs/.
"""

from __future__ import annotations

from datetime import UTC, datetime
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.pipeline.report.signs import SIGNS, Finding, Severity, Sign

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = """\
# Signs of theft

[`kafka-dt pipeline report`](how-to/pipeline-report.md) looks for these signs that a token was stolen, or that a client
tries to get one. A sign is a reason to look, not a proof. Each finding has a severity: **high** (a stranger most likely
has a token that works: act now) or **medium** (look today), and the next commands.

In a report a use of a token, at one address, is one finding. If several signs tell of it, it is that of the gravest,
and what the others say is its last piece of evidence, *also*.

No sign compares clients by address alone, because a pod that starts again has another one: addresses count by their
[zone](how-to/pipeline-report.md#zones), client ids without their numbers and random parts. All signs see what a node
sees: behind a proxy that hides addresses, every client is in one place.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(line for sign in SIGNS for line in _chapter(sign))])


def _chapter(sign: Sign[Any]) -> Iterator[str]:
    yield f"## {sign.title}\n"
    yield f"`{sign.kind}`, about {'an' if sign.subject_type == 'address' else 'a'} {sign.subject_type}.\n"
    yield f"{cleandoc(sign.manual)}\n"
    yield "| threshold | default | |\n|---|---|---|"
    for row in sign.threshold_rows:
        yield f"| `{row.name}` | {row.value} | {row.says} |"
    yield "\nWhat to do:\n"
    for number, response in enumerate(sign.responses(_example(sign), "/data/audit"), start=1):
        yield f"{number}. {response.why}"
        if response.command:
            yield f"\n   ```sh\n   {response.command}\n   ```\n"
    yield ""


def _example(sign: Sign[Any]) -> Finding:
    seen = datetime(2026, 11, 20, tzinfo=UTC)
    token, address = "W23eVbJOQheJ-v0f6A8uRg", "203.0.113.9"
    subject = {"token": token, "address": address, "principal": "User:alice"}[sign.subject_type]
    return Finding(
        sign.kind, Severity.HIGH, sign.subject_type, subject, token, "User:alice", address, seen, seen, 1, evidence=()
    )
