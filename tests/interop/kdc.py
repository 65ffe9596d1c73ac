"""A real MIT KDC in a directory of its own, on a port of its own.

    with Kdc(folder) as kdc:
        kdc.environment                      # KRB5_CONFIG, for programs that use Kerberos
        keytab = kdc.keytab(SERVICE)         # a principal with a random key, and a file with that key
        accepting(keytab)                    # the settings of a server that takes Kerberos

Nothing of the machine's own Kerberos is read or written. The programs are Debian's packages krb5-kdc, krb5-admin-server
and krb5-user; `missing()` tells which are not there.

Source: MIT Kerberos' documentation, "krb5.conf", "kdc.conf", "kdb5_util", "kadmin.local".
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually

REALM = "KAFKA-DT.TEST"
SERVICE = "kafka/localhost"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
JAAS = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
RULES = "RULE:[1:$1](svc-.*)s/svc-(.*)/$1/, RULE:[2:$1.$2](.*[.]admin)/L, DEFAULT"
_PROGRAMS = {"krb5kdc": "krb5-kdc", "kdb5_util": "krb5-kdc", "kadmin.local": "krb5-admin-server", "kinit": "krb5-user"}
# Debian keeps some of them where only root looks.
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_TIMEOUT_S = 60

_KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  default_ccache_name = FILE:{directory}/ccache
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""

_KDC_CONF = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    acl_file = {directory}/kadm5.acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = STDERR
"""


def missing() -> str:
    """What has to be installed before a KDC and GSSAPI can run; empty if nothing."""
    packages = {package for program, package in _PROGRAMS.items() if shutil.which(program, path=_PATH) is None}
    wanted = [f"the Debian packages {', '.join(sorted(packages))}"] if packages else []
    if importlib.util.find_spec("gssapi") is None:
        wanted.append("the Python package gssapi (the extra `kerberos`)")
    return " and ".join(wanted)


def accepting(keytab: Path, principal: str = SERVICE) -> dict[str, object]:
    """The settings of a server that takes Kerberos at SASL_PLAINTEXT, besides the list of its mechanisms."""
    return {
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        JAAS: f'{MODULE} required useKeyTab="true" storeKey="true" keyTab="{keytab}" principal="{principal}";',
    }


class Kdc:
    """One KDC with an empty realm.

    Args:
        directory: receives its configuration, database, log and keytabs.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_ports(1)
        names = {"realm": REALM, "directory": directory, "port": self._port}
        self.krb5_conf = directory / "krb5.conf"
        self.krb5_conf.write_text(_KRB5_CONF.format(**names))
        (directory / "kdc.conf").write_text(_KDC_CONF.format(**names))
        self.environment = {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHENAME": f"file2:{directory}/replay-cache",
            "PATH": _PATH,
        }
        program = shutil.which("krb5kdc", path=_PATH) or "krb5kdc"
        self._process = ChildProcess("krb5kdc", [program, "-n"], directory / "krb5kdc.log", self.environment)

    def keytab(self, *principals: str) -> Path:
        """Make principals with random keys, and a file with these keys."""
        path = self._directory / (re.sub(r"\W+", "-", principals[0]) + ".keytab")
        for principal in principals:
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self.add_key(principal, path)
        return path

    def change_key(self, principal: str) -> None:
        """Give a principal a new random key, in the KDC alone."""
        self._run("kadmin.local", "-q", f"cpw -randkey {principal}")

    def add_key(self, principal: str, keytab: Path) -> None:
        """Add the key that a principal has now to a file."""
        self._run("kadmin.local", "-q", f"ktadd -norandkey -k {keytab} {principal}")

    def ticket(self, principal: str, keytab: Path) -> dict[str, str]:
        """Get a ticket as a user would; gives the environment of a program that uses it."""
        cache = {"KRB5CCNAME": f"FILE:{keytab}.ccache"}
        self._run("kinit", "-k", "-t", str(keytab), principal, **cache)
        return self.environment | cache

    def _run(self, program: str, *arguments: str, text: str = "", **environment: str) -> None:
        found = shutil.which(program, path=_PATH) or program
        done = subprocess.run(
            [found, *arguments],
            input=text,
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        # kadmin.local ends with 0 also when a query of it fails.
        if done.returncode or "while" in done.stderr:
            raise AssertionError(f"{program} failed: {done.stdout}{done.stderr}")

    def __enter__(self) -> Self:
        self._run("kdb5_util", "create", "-s", "-r", REALM, text="master\nmaster\n")
        with self._process.starting():
            eventually(self._listens, within_s=_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True
