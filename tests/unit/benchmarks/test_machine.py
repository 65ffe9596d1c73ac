from __future__ import annotations

import subprocess
import sys

import pytest

ASK = """
import resource
from benchmarks.machine import connections_that_fit
resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700))
print(connections_that_fit({wanted}))
"""


@pytest.mark.parametrize(("wanted", "given"), [(150, 150), (16_000, 200)])
def test_there_are_as_many_connections_as_a_process_may_have_files_open_and_some_files_to_spare(
    wanted: int, given: int
) -> None:
    command = [sys.executable, "-c", ASK.format(wanted=wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == given
