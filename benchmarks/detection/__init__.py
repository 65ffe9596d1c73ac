"""Judges the report's detection on data that no rule was made with.

    make bench ONLY=detection                                       the judgement that the manual has
    python -m benchmarks.detection company --seed 7 --out DIR       a month of a company, with the truth about it
    python -m benchmarks.detection swap --from EVENTS --out DIR     other events, with the owners of tokens swapped
    python -m benchmarks.detection judge DIR                        the report's findings on such a folder, judged

`company/` is a generator that knows no rule. `swaps.py` makes hijacks of any events. `stories.py` is the truth,
`judging.py` compares findings with it, `running.py` runs the report, and `months.py` lists what is judged. For work on
a rule take any seed but those in `months.HELD_OUT`.
"""
