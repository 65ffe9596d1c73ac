"""Render the chart by real helm and check what it renders against the schemas of Kubernetes.

    charts = Charts.fetched()                 # once; needs Go and the registries, kept in a cache of the user
    resources = charts.render({"mode": "alone", ...})
    charts.check(resources)

helm is built of its Go module. The schemas of Kubernetes' own resources are those of the package kubernetes-validate
(requirements-kubernetes.lock), those of Prometheus' operator are in the operator's Go module.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import yaml  # type: ignore[import-untyped]

from tests.support.docs.documents import ROOT

CHART: Final = ROOT / "ops" / "helm" / "kafka-dt"
LOCK: Final = ROOT / "requirements-kubernetes.lock"
HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.18.6"
OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
VERSIONS: Final = ("1.27", "1.37")
"""Of Kubernetes: the oldest that the chart allows, and the newest with schemas."""
RELEASE: Final = "tokens"
NAMESPACE: Final = "streams"


_VALIDATE: Final = """
import json, jsonschema, sys, yaml
schema, resource = json.loads(sys.argv[1]), yaml.safe_load(open(sys.argv[2]))
for error in jsonschema.Draft202012Validator(schema).iter_errors(resource):
    print(error.message)
"""


class ChartsMissing(Exception):
    """Helm or the schemas cannot be had here; the text says why."""


class ChartRefused(Exception):
    """Helm does not render the chart with these values; the text is helm's."""


@dataclass(frozen=True, slots=True)
class Charts:
    """Helm, and the schemas."""

    helm: Path
    schemas: Path
    """A folder for PYTHONPATH with kubernetes-validate."""
    operator: Path
    """The folder with the definitions of the operator's resources."""

    @classmethod
    def fetched(cls) -> Self:
        """Fetch what is not in the cache yet.

        Raises:
            ChartsMissing: Go is not installed, or a registry does not have a part.
        """
        if (go := shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")) is None:
            raise ChartsMissing("Go is not installed")
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-dt"
        programs = caches / f"go-{HELM.rpartition('@')[2]}"
        if not (programs / "helm").exists():
            _fetch([go, "install", HELM], GOBIN=str(programs))
        schemas = caches / "kubernetes-schemas"
        if not (schemas / LOCK.name).exists() or (schemas / LOCK.name).read_bytes() != LOCK.read_bytes():
            shutil.rmtree(schemas, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
            _fetch([*pip, "--target", str(schemas), "--requirement", str(LOCK)])
            shutil.copy(LOCK, schemas)
        module = json.loads(_fetch([go, "mod", "download", "-json", OPERATOR]))
        return cls(programs / "helm", schemas, Path(module["Dir"]) / "example" / "prometheus-operator-crd")

    def render(self, values: Mapping[str, object]) -> list[dict[str, Any]]:
        """Render the chart; returns the resources.

        Raises:
            ChartRefused: helm says why.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values, file)
            file.flush()
            command = [str(self.helm), "template", RELEASE, str(CHART), "--namespace", NAMESPACE]
            command += ["--values", file.name, "--kube-version", VERSIONS[0]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ChartRefused(done.stderr)
        return [resource for resource in yaml.safe_load_all(done.stdout) if resource]

    def check(self, resources: Sequence[Mapping[str, Any]]) -> list[str]:
        """Check resources against the schemas; returns what is wrong."""
        ours = [each for each in resources if not each["apiVersion"].startswith("monitoring.coreos.com/")]
        wrong: list[str] = []
        for version in VERSIONS:
            wrong += self._run("-m", "kubernetes_validate", "--strict", "--quiet", "-k", version, resources=ours)
        for each in (each for each in resources if each not in ours):
            definition = self.operator / f"monitoring.coreos.com_{each['kind'].lower()}s.yaml"
            (version,) = yaml.safe_load(definition.read_text())["spec"]["versions"]
            schema = json.dumps(version["schema"]["openAPIV3Schema"])
            wrong += self._run("-c", _VALIDATE, schema, resources=[each])
        return wrong

    def _run(self, *arguments: str, resources: Sequence[Mapping[str, Any]]) -> list[str]:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all(resources, file)
            file.flush()
            command = [sys.executable, *arguments, file.name]
            variables = os.environ | {"PYTHONPATH": str(self.schemas)}
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        return [line for line in (done.stdout + done.stderr).splitlines() if line]


def _fetch(command: Sequence[str], **variables: str) -> str:
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChartsMissing(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
