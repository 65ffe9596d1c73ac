"""`kafka-dt` commands as processes of their own, run to their end.

done = called("token", "describe", "--bootstrap-server", address)
done.returncode, done.stdout, done.stderr
"""

from __future__ import annotations

import subprocess
import tempfile
from typing import IO

from tests.support.nodes.server import PROGRAM
from tests.support.processes.forked import fork_server

TIMEOUT_S = 120.0


def called(*arguments: object, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run a command; raises subprocess.TimeoutExpired."""
    command = [str(PROGRAM), *map(str, arguments)]
    if (forks := fork_server()) is None:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with forks.start(command[1:], output=output, errors=errors) as process:
            status = process.wait(timeout_s)
        return subprocess.CompletedProcess(command, status, _text(output), _text(errors))


def _text(written: IO[bytes]) -> str:
    written.seek(0)
    return written.read().decode()
