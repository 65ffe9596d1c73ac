"""kafka-dt and a real Apache Kafka broker side by side: what each does, how fast, and at what cost.

    make bench                              every scenario, about two hours
    make bench ONLY=changes,logins          some of them
    make bench QUICK=1                      one short round, with few tokens: roughly how fast it is, in twenty minutes

`scenarios/` holds one module for each question. Each asks `bench.py` for servers (`servers.py`: a process tree and a
ZooKeeper of its own each) on a number of tokens (`tokens.py`), drives one after the other in turns with the same load
(`generator.py`, a Java program in `load/`), and notes values, round by round. `results.py` stores them,
`page.py` (with `tables.py` and `plots.py`) makes `docs/performance.md` of them; `targets.py` says what is aimed at.

A gateway is measured between clients and a broker (`gateways.py`), with Kafka's own perf tools (`perf_tools.py`).

Read `scenarios/changes.py` first, then `bench.py`. Real processes are started the way the tests do it
(`tests/support`). Linux, Java 17 with its compiler, and about 4 GB of memory are needed.
"""
