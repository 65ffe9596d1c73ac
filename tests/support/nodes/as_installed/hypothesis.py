"""In the place of hypothesis in the programs that tests and benchmarks start.

kio imports hypothesis wherever it is installed, which no user's node does: 0.2 s of CPU time and 5 MiB.
"""

from __future__ import annotations

raise ImportError("programs run without the packages of the tests")
