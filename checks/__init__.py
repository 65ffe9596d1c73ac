"""Checks of `make lint` that are our own: `dependencies` asks for known vulnerabilities of locked packages."""
