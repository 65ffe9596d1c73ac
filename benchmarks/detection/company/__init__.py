"""Companies and their audit events: a second generator, which knows nothing of the rules that it judges.

    python -m benchmarks.detection company --seed 7 --out DIR

It was written from docs/audit.md and from how companies work, by an author who had read neither the rules of
`kafka_dt/pipeline/report` nor the first generator, `kafka_dt/pipeline/generator`. Keep it so: no change here may come
from what a rule finds or misses. An import contract holds that it uses nothing of the pipeline.

`company.py` draws a company from a seed, and `timeline.py` runs its processes in simulated time. `cluster.py` answers
clients as nodes do, and writes each event. `networks.py` and `software.py` say from where and with what they connect.
`owners.py`, `work.py` and `people.py` are the daily work, `changes.py` the honest events that look like theft,
and `thefts.py` the incidents. Read `cluster.py` first, then `thefts.py`.

Source: docs/audit.md; KIP-48, KIP-368, KIP-373.
"""
