"""Our own checks of `make lint`, and what `make check` needs.

`dependencies` asks for known vulnerabilities of locked packages; `prose` finds phrases that readers must decode.
`changed` chooses the unit tests of what changed.
"""
