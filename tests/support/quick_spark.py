"""Settings of a Spark that runs each query once, over a handful of rows: compiling it would cost more than it saves.

    settings = QUICK_SPARK | {"spark.driver.memory": "768m"}
    command = [PROGRAM, "pipeline", "ingest", *options(QUICK_SPARK)]

Source: Spark's `SQLConf` (WHOLESTAGE_CODEGEN_ENABLED, CODEGEN_FACTORY_MODE).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.support.java import QUICK_START

QUICK_JVM: Final = " ".join(QUICK_START)
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
QUICK_SPARK: Final = {**INTERPRETED, "spark.driver.memory": "512m", "spark.driver.extraJavaOptions": QUICK_JVM}


def options(settings: Mapping[str, str]) -> list[str]:
    """The options of `kafka-dt pipeline` for settings of Spark."""
    return [f"--conf={key}={value}" for key, value in settings.items()]
