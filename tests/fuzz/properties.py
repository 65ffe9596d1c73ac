"""Any text in the files of operators and users: settings of a node, of a client, a JAAS line, or one clear error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kafka_dt.client import ClientConfig, TokenClientError
from kafka_dt.config import ConfigError, audit_settings, from_properties, gateway_settings, listeners
from kafka_dt.config.load import read_properties
from kafka_dt.config.settings import options
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt.jaas import JaasError, parse_login_file, parse_login_module

_NODE, _CLIENT, _JAAS_LINE, _JAAS_FILE = range(4)
"""What the first byte of an input says that the rest is."""
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_EXAMPLES: Final = (
    (
        _NODE,
        "listeners=A://:9092,B://[::1]:0\nlistener.security.protocol.map=A:SASL_PLAINTEXT,B:SSL\n"
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\nzookeeper.connect=a:2181/b\nsuper.users=User:a;User:b\n"
        f'listener.name.a.plain.sasl.jaas.config={_PLAIN} username="a" password="b" user_c="d";\n'
        "delegation.token.secret.key=secret\nconnections.max.idle.ms=-1\n",
    ),
    (
        _CLIENT,
        "bootstrap.servers=localhost:9092,[::1]:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_PLAIN} username="a" \\\n  password="b";\nrequest.timeout.ms=1\n',
    ),
    (_JAAS_LINE, f'{_PLAIN} /* words */ username="a\\101" password=b debug=true;'),
    (_JAAS_FILE, f"KafkaServer {{ {_PLAIN} a=b; {_PLAIN} c=d; }};\n// words\nClient {{ {_PLAIN}; }};"),
)
_MEMORY: Final = os.memfd_create("properties")
_FILE: Final = Path(f"/proc/self/fd/{_MEMORY}")


def seeds() -> Iterable[bytes]:
    """Give one text of each kind, and every option with its default."""
    for kind, text in _EXAMPLES:
        yield bytes((kind,)) + text.encode()
    for _, declared in options():
        if isinstance(declared.default, str | int):
            yield bytes((_NODE,)) + f"{declared.key}={declared.default}\n".encode()


def check(data: bytes) -> None:
    """Read one text; the first byte says what it is."""
    which, content = data[:1], data[1:]
    # A value of this form makes kafka-dt read a file, which is what the operator asks for, endless ones included.
    if not which or b"file:" in content or b"location" in content:
        return
    try:
        match which[0] % 4:
            case 0:
                _read_node(content)
            case 1:
                ClientConfig.from_properties(_properties(content))
            case 2:
                parse_login_module(content.decode("utf-8", "replace"))
            case _:
                parse_login_file(content.decode("utf-8", "replace"))
    except (ConfigError, TokenClientError, JaasError) as error:
        assert str(error), "an error without words"


def _read_node(content: bytes) -> None:
    settings = from_properties(_properties(content)).settings
    made = listeners(settings, MECHANISMS)
    gateway_settings(settings, made)
    audit_settings(settings)


def _properties(content: bytes) -> Mapping[str, str]:
    os.ftruncate(_MEMORY, 0)
    os.pwrite(_MEMORY, content, 0)
    return read_properties(_FILE)
