"""A real systemd as process 1 of namespaces of its own, to run a unit as a machine would.

    with Machine(folder) as machine:
        machine.run("systemctl start kafka-dt")

/etc is a copy, and /opt, /run, /var/lib and /var/log are empty, so that commands which install a service change nothing
of this machine. The network is this machine's. Only root can make such namespaces.

Source: unshare(1), nsenter(1), https://systemd.io/CONTAINER_INTERFACE.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually

_UNITS = Path("/usr/lib/systemd/system")
_TARGETS = ("sysinit", "basic", "multi-user", "shutdown", "umount", "local-fs", "network-online", "slices", "sockets")
"""What a unit of a service and a start need; no service of this machine is among it."""
_START_S = 30.0
_COMMAND_S = 180.0
_BOOT = """\
set -e
mount --make-rprivate /
mkdir {folder}/opt {folder}/lib {folder}/log {folder}/units
cp -a /etc {folder}/etc
rm -rf {folder}/etc/systemd/system {folder}/etc/init.d {folder}/etc/fstab
mkdir {folder}/etc/systemd/system
for target in {targets}; do cp {units}/$target.target {folder}/units; done
mount --bind {folder}/etc /etc
mount --bind {folder}/opt /opt
mount --bind {folder}/lib /var/lib
mount --bind {folder}/log /var/log
mount --bind {folder}/units {units}
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 none /sys/fs/cgroup
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
"""


class Machine:
    """What systemd runs on; it ends with the block, with all that was started in it.

    folder: receives /etc and the others; no other user may have access to it
    """

    def __init__(self, folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can make the namespaces that systemd runs in")
        for program in ("/lib/systemd/systemd", "unshare", "nsenter"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")
        folder.mkdir(mode=0o755)
        self.folder = folder
        boot = _BOOT.format(folder=folder, targets=" ".join(_TARGETS), units=_UNITS)
        spaces = ["--pid", "--mount", "--uts", "--ipc", "--cgroup"]
        command = ["unshare", "--fork", "--kill-child", "--mount-proc", *spaces, "/bin/sh", "-c", boot]
        self._unshare = ChildProcess("systemd", command, folder / "systemd.log")

    def run(self, commands: str, *, succeeds: bool = True) -> str:
        """Run lines of a shell as root of the machine; gives what they print."""
        enter = ["nsenter", f"--target={self._first()}", "--pid", "--mount", "--uts", "--ipc", "--cgroup"]
        variables = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]
        done = subprocess.run(
            [*enter, *variables, "/bin/sh", "-ec", commands],
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
            start_new_session=True,
        )
        assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
        return done.stdout

    def _first(self) -> int:
        """The id here of the process that is number 1 there."""
        unshare = self._unshare.pid
        children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        return int(children[0])

    def _is_up(self) -> bool:
        try:
            return "running" in self.run("systemctl is-system-running")
        except (AssertionError, IndexError, FileNotFoundError):
            return False

    def __enter__(self) -> Self:
        self._unshare.start()
        eventually(self._is_up, within_s=_START_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._unshare.kill()
