from pathlib import Path

from kafka_dt.config import options
from kafka_dt.config.manual import page

ROOT = Path(__file__).parents[3]


def test_the_manual_is_generated_from_the_table() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text() == page(), (
        "run: python -m kafka_dt.config.manual docs/configuration.md"
    )


def test_every_option_has_an_entry() -> None:
    text = page()
    assert all(f"`{declared.key}`" in text for _, declared in options())
