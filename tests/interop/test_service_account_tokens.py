"""Pods that log in with the token of their service account, with the settings of the page about Kubernetes.

The API server is a web server with TLS that publishes the keys as Kubernetes does: under one media type only.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import javaproperties
import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.docs.documents import marked, read
from tests.support.identity.issuer import Issuer, publishing
from tests.support.identity.tls_material import authority, leaf
from tests.support.java.properties import token
from tests.support.java.reference_client import JavaClientError, ReferenceClient
from tests.support.nodes.server import KafkaDt, server_properties

PAGE = "docs/how-to/kubernetes.md"
VALUES: Any = yaml.safe_load(*marked(PAGE, "service accounts"))
POD: Any = yaml.safe_load(*marked(PAGE, "pod"))
(MOUNT,) = POD["spec"]["containers"][0]["volumeMounts"]
(SOURCE,) = POD["spec"]["volumes"][0]["projected"]["sources"]
AUDIENCE = SOURCE["serviceAccountToken"]["audience"]
NAME = VALUES["settings"]["sasl.oauthbearer.expected.issuer"]
SUBJECT = f"system:serviceaccount:{POD['metadata']['namespace']}:{POD['spec']['serviceAccountName']}"
CLAIMS = {
    "iss": NAME,
    "aud": [AUDIENCE],
    "kubernetes.io": {"namespace": "jobs", "pod": {"name": "etl", "uid": "1"}, "serviceaccount": {"name": "etl"}},
}
ISSUER = Issuer()


@pytest.fixture(scope="module")
def node(zookeeper_connect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaDt]:
    """A node with the values of the page; its API server is a web server of this test."""
    folder = tmp_path_factory.mktemp("kubernetes")
    root = authority("kubernetes")
    server = leaf("127.0.0.1", root)
    (folder / "server.pem").write_text(server.key_pem() + server.chain_pem)
    (folder / "ca.crt").write_text(root.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with publishing(ISSUER.jwks(), context) as published:
        published.media_type = "application/jwk-set+json"
        # The listener of the test has no TLS.
        settings = {
            key.replace("sasl_ssl", "sasl_plaintext"): text.replace("/etc/kafka-dt/kubernetes", str(folder)).strip()
            for key, text in VALUES["settings"].items()
        }
        settings["sasl.oauthbearer.jwks.endpoint.url"] = published.url
        settings["sasl.enabled.mechanisms"] = ",".join(VALUES["listener"]["mechanisms"])
        base = {
            key: value
            for key, value in server_properties(zookeeper_connect).items()
            if not key.startswith("listener.name.")
        }
        with KafkaDt(folder, base | settings) as running:
            yield running


def client_of(client: ReferenceClient, folder: Path, bearer_token: str) -> dict[str, str]:
    """Give the client's settings of the page, with the pod's token in a folder."""
    named = f"{MOUNT['mountPath']}/{SOURCE['serviceAccountToken']['path']}"
    path = folder / SOURCE["serviceAccountToken"]["path"]
    path.write_text(bearer_token)
    (text,) = marked(PAGE, "client")
    assert f"file://{named}" in text
    assert f"allowed.urls=file://{named}\n" in read(PAGE)
    client.set_property("org.apache.kafka.sasl.oauthbearer.allowed.urls", path.as_uri())
    found = dict(javaproperties.loads(text.replace(f"file://{named}", path.as_uri())))
    return {key: value for key, value in found.items() if not key.startswith("ssl.")} | {
        "security.protocol": "SASL_PLAINTEXT"
    }


def test_a_pod_gets_a_delegation_token_with_its_service_account_and_logs_in_with_it(
    java_client: ReferenceClient, node: KafkaDt, tmp_path: Path
) -> None:
    login = client_of(java_client, tmp_path, ISSUER.token(SUBJECT, **CLAIMS))
    with java_client.open(node.sasl, login) as pod:
        created = pod.create()
    assert created.owner == "User:system:serviceaccount:jobs:etl"
    with java_client.open(node.sasl, token(created.login)) as worker:
        assert worker.cluster()


@pytest.mark.parametrize(
    "claims", [{"aud": ["https://kubernetes.default.svc.cluster.local"]}, {"iss": "https://other.cluster"}]
)
def test_a_token_for_the_api_server_and_one_of_another_cluster_are_refused(
    java_client: ReferenceClient, node: KafkaDt, tmp_path: Path, claims: dict[str, Any]
) -> None:
    login = client_of(java_client, tmp_path, ISSUER.token(SUBJECT, **CLAIMS | claims))
    with java_client.open(node.sasl, login) as pod, pytest.raises(JavaClientError, match="invalid_token"):
        pod.create()
