"""Where the Parquet output of a report goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dt.pipeline.errors import OutputNotShared
from kafka_dt.pipeline.report.reporting import output_uri

TO = Path("/reports/to day")


def test_on_one_machine_it_is_beside_the_page() -> None:
    assert output_uri(None, TO, here=True) == "file:///reports/to day/parquet"


def test_on_a_cluster_it_is_where_somebody_says() -> None:
    assert output_uri("hdfs:///reports", TO, here=False) == "hdfs:///reports"
    with pytest.raises(OutputNotShared, match="name a place that they share with --parquet"):
        output_uri(None, TO, here=False)
