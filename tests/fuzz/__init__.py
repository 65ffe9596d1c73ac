"""Coverage-guided fuzzing: input from outside, and the one sentence that must hold for each kind of it.

A target is a module with two functions: `seeds` gives inputs to start from, and `check` takes any bytes and raises if
the sentence in the module's first line does not hold. `targets.py` lists them, `__main__.py` runs one under atheris
(`python -m tests.fuzz frames --seconds 600`), and `test_fuzzing.py` runs all of them: `make test` for half a minute,
`make soak` for a quarter of an hour.

To repeat a finding, run `python -m tests.fuzz TARGET --input FILE` with the file that the run has left.
"""
