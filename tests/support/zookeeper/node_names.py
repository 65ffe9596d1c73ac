"""Names that a znode may have, for Hypothesis.

Most texts hold a character that ZooKeeper forbids, so a filter alone drops so many that Hypothesis refuses to go on.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from kafka_dt.zookeeper.znodes.kafka import is_node_name

_CHARACTERS: Final = st.characters(max_codepoint=0xFFEF, exclude_categories=["Cc", "Cs", "Co"], exclude_characters="/")
NODE_NAMES: Final = st.text(_CHARACTERS, min_size=1, max_size=30).filter(is_node_name)
