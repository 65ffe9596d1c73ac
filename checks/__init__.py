"""Our own checks of `make lint`.

`dependencies` asks for known vulnerabilities of locked packages; `prose` finds phrases that readers must decode.
"""
