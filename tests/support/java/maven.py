"""Class paths from Maven Central, resolved by the Ivy that travels inside pyspark's jars.

`resolve(KAFKA_39, java)` downloads once into a cache of the user and answers from it later; several processes may ask
at the same time. Ivy knows Maven Central by itself; proxies and trust stores come from JAVA_TOOL_OPTIONS, a mirror
from an Ivy settings file of your own:

    KAFKA_DT_IVY_CACHE     where the jars are kept (default: kafka-dt/ivy in XDG_CACHE_HOME or ~/.cache)
    KAFKA_DT_IVY_SETTINGS  an ivysettings.xml to use instead of the one written here

Limits: versions are pinned here; nothing is ever removed from the cache.
Source: Apache Ivy 2.5, "Standalone", "IBiblio resolver" (a local Maven repository is left alone on purpose: Ivy stops
at one that holds a pom without its jar).
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.java.jvm import Java

TIMEOUT_SECONDS = 900
"""For one class path, about 60 jars, over a slow line."""

_SETTINGS = """\
<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


class ResolutionFailed(Exception):
    """Maven Central did not give what was asked for."""

    def __init__(self, bundle: Bundle, detail: str) -> None:
        super().__init__(f"cannot resolve {bundle.name} from Maven Central: {detail}")
        self.bundle = bundle
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Bundle:
    """Artifacts that make one class path together with all they need."""

    name: str
    """Names the folder in the cache."""
    coordinates: tuple[str, ...]
    """Each `organisation:name:version`."""
    excluded: tuple[str, ...] = ()
    """Each `organisation:name`, left out with everything only it needs."""

    def module(self) -> str:
        """This bundle as the text of an ivy.xml."""
        wanted = "".join(
            f'    <dependency org="{org}" name="{name}" rev="{version}" conf="default->default,runtime"/>\n'
            for org, name, version in (each.split(":") for each in self.coordinates)
        )
        unwanted = "".join(
            f'    <exclude org="{org}" module="{name}"/>\n' for org, name in (each.split(":") for each in self.excluded)
        )
        return (
            '<ivy-module version="2.0">\n'
            f'  <info organisation="kafka-dt" module="{self.name}"/>\n'
            '  <configurations><conf name="default"/></configurations>\n'
            f"  <dependencies>\n{wanted}{unwanted}  </dependencies>\n"
            "</ivy-module>\n"
        )


def _kafka(name: str, version: str, logging: str) -> Bundle:
    return Bundle(
        name,
        (
            f"org.apache.kafka:kafka-tools:{version}",
            f"org.apache.kafka:kafka_2.13:{version}",
            f"org.apache.kafka:kafka-clients:{version}",
            logging,
        ),
        # Connect is a web server of 40 jars that no tool of ours starts.
        excluded=("org.apache.kafka:connect-runtime",),
    )


KAFKA_39 = _kafka("kafka-3.9", "3.9.1", "org.slf4j:slf4j-reload4j:1.7.36")
"""The last release line that runs on ZooKeeper: broker, tools and clients."""

KAFKA_4X = _kafka("kafka-4.x", "4.4.0", "org.slf4j:slf4j-nop:1.7.36")
"""The newest release: tools and clients; brokers too, with `LOGGING` before it."""

LOGGING = Bundle("logging", ("org.slf4j:slf4j-reload4j:1.7.36",))
"""What a broker of the newest release writes its log with, configured like that of the last with ZooKeeper."""

YARN = Bundle(
    "yarn-3.4",
    (
        "org.apache.hadoop:hadoop-client-minicluster:3.4.1",
        # What it needs beside it and does not name.
        "org.slf4j:slf4j-reload4j:1.7.36",
        "org.bouncycastle:bcprov-jdk18on:1.78.1",
        "org.bouncycastle:bcpkix-jdk18on:1.78.1",
        "javax.xml.bind:jaxb-api:2.3.1",
        "org.glassfish.jaxb:jaxb-runtime:2.3.9",
    ),
)
"""A YARN in one process, of the Hadoop that Spark 4.0 brings."""

SPARK_KAFKA = Bundle("spark-kafka-4.0", ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",))
"""Spark's Kafka source and sink with its token provider; the rest of Spark is in pyspark."""

DELTA = Bundle(
    "delta-4.0",
    ("io.delta:delta-spark_2.13:4.0.0",),
    # Spark has both, and a newer Scala.
    excluded=("org.scala-lang:scala-library", "org.antlr:antlr4-runtime"),
)
"""Delta Lake for the Spark of pyspark."""

Classpath = tuple[Path, ...]


def resolve(bundle: Bundle, java: Java, progress: Callable[[str], None] = lambda _line: None) -> Classpath:
    """The jars of `bundle`, downloaded when they are not in the cache yet.

    Raises ResolutionFailed with Ivy's own words.
    """
    module = bundle.module()
    folder = cache_directory() / f"{bundle.name}-{hashlib.sha256(module.encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    listing = folder / "classpath"
    with _locked(folder / "lock"):
        if jars := _read(listing):
            return jars
        progress(f"downloading {bundle.name} from Maven Central (once; kept in {folder})")
        (folder / "ivy.xml").write_text(module)
        _run_ivy(bundle, java, folder, listing.with_suffix(".new"))
        # Renamed last, so that a killed download is begun again and never half believed.
        listing.with_suffix(".new").replace(listing)
        jars = _read(listing)
        if not jars:
            raise ResolutionFailed(bundle, f"Ivy wrote no usable class path to {listing}")
        progress(f"{bundle.name}: {len(jars)} jars")
        return jars


def cache_directory() -> Path:
    """Where the jars are kept."""
    if own := os.environ.get("KAFKA_DT_IVY_CACHE"):
        return Path(own)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "kafka-dt" / "ivy"


def pyspark_jars() -> Path:
    """The folder of pyspark's jars, which hold Ivy and ZooKeeper; raises FileNotFoundError."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("pyspark is not installed")
    return Path(spec.submodule_search_locations[0]) / "jars"


def _run_ivy(bundle: Bundle, java: Java, folder: Path, listing: Path) -> None:
    settings = Path(os.environ.get("KAFKA_DT_IVY_SETTINGS") or folder / "ivysettings.xml")
    if not os.environ.get("KAFKA_DT_IVY_SETTINGS"):
        settings.write_text(_SETTINGS)
    ivy = ("-settings", settings, "-cache", folder / "cache", "-ivy", folder / "ivy.xml", "-cachepath", listing)
    command = java.command(
        "org.apache.ivy.Main", map(str, ivy), classpath=sorted(pyspark_jars().glob("ivy-*.jar")), heap_mb=256
    )
    log = folder / "ivy.log"
    try:
        with log.open("w") as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise ResolutionFailed(bundle, f"no end after {TIMEOUT_SECONDS} s; see {log}") from None
    # Ivy may end with status 0 although an artifact is missing.
    problem = _problem(log)
    if done.returncode or problem:
        raise ResolutionFailed(bundle, f"{problem or f'Ivy ended with status {done.returncode}'}; see {log}")


def _problem(log: Path) -> str:
    """What Ivy stumbled over first, empty when it did not."""
    marks = ("unresolved dependency:", "[FAILED     ]", "Server access error", "SERVER ERROR", "[NOT FOUND  ]")
    lines = [line.strip(" \t:") for line in log.read_text(errors="replace").splitlines()]
    found = [line for line in lines if any(mark in line for mark in marks)]
    return found[0] if found else ""


def _read(listing: Path) -> Classpath:
    """The class path once written, empty when there is none or a jar of it is gone."""
    if not listing.exists():
        return ()
    jars = tuple(Path(jar) for jar in listing.read_text().strip().split(os.pathsep) if jar)
    return jars if all(jar.exists() for jar in jars) else ()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
