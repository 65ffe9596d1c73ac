"""Makes a scenario: the truth first, then the parts, on Spark's executors or in this process.

    generated = generate(scenario, folder, spark=spark, told=lambda done, of: ...)

The folder is one that executors reach under the same path: of this machine, or mounted everywhere. Interrupted and run
again with the same scenario it begins anew over what is there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.files import FolderInUse, Written, write_part
from kafka_dt.pipeline.generator.incidents import plant
from kafka_dt.pipeline.generator.parts import Part, parts
from kafka_dt.pipeline.generator.shares import Shares
from kafka_dt.pipeline.generator.truth import TRUTH_FILE, Truth, TruthError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.generator.scenario import Scenario

_LOOK_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Generated:
    """What was made."""

    folder: Path
    written: Written
    truth: Truth

    @property
    def truth_file(self) -> Path:
        """Where it says what was planted."""
        return self.folder / TRUTH_FILE


def generate(
    scenario: Scenario,
    folder: Path,
    *,
    spark: SparkSession | None = None,
    told: Callable[[int, int], None] = lambda _done, _of: None,
) -> Generated:
    """Write the events of a scenario, and the truth about them, into a folder.

    Args:
        scenario: which one.
        folder: made when missing.
        spark: whose executors do it; None = this process, one part after the other.
        told: hears how many parts are done, and of how many.

    Raises:
        FolderInUse: there are events already, of something else.
        OSError: it cannot be written.
    """
    planted = plant(scenario, Shares(scenario))
    truth = Truth(scenario.document(), tuple(each.incident for each in planted))
    _take(folder, truth)
    made = parts(scenario, planted)
    told(0, len(made))
    written = _here(made, folder, told) if spark is None else _on_spark(spark, made, folder, told)
    return Generated(folder, written, truth)


def _take(folder: Path, truth: Truth) -> None:
    """Make the folder ours, unless it is somebody else's."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TRUTH_FILE
    if any(folder.glob("*.jsonl*")):
        try:
            same = Truth.load(path) == truth
        except (FileNotFoundError, TruthError):
            same = False
        if not same:
            raise FolderInUse(folder)
    truth.save(path)


def _here(made: Sequence[Part], folder: Path, told: Callable[[int, int], None]) -> Written:
    written = Written()
    for number, part in enumerate(made, start=1):
        written += write_part(part, folder)
        told(number, len(made))
    return written


def _on_spark(spark: SparkSession, made: Sequence[Part], folder: Path, told: Callable[[int, int], None]) -> Written:
    context = spark.sparkContext
    done = context.accumulator(0)
    path = str(folder.absolute())

    def write(part: Part) -> Written:
        written = write_part(part, Path(path))
        done.add(1)
        return written

    # A part a task: they are of unequal size.
    work = context.parallelize(made, len(made)).map(write)
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(work.collect)
        while not result.done():
            wait([result], _LOOK_S)
            told(done.value, len(made))
        return sum(result.result(), Written())
