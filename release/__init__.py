"""A release in one command: `make release KEY=...` does all but the upload.

`__main__` says what is made; read it first. `tree` decides what is released and refuses a tree that is not ready,
`packages` builds the wheels and source distributions, `components` lists what an installation consists of, and
`signatures` writes the checksums and signs them.

Nothing of a release depends on the machine, the folder or the time of the build: times are those of the commit
(`SOURCE_DATE_EPOCH`), and the tools are those of requirements-release.lock.

Source: https://reproducible-builds.org/docs/source-date-epoch/; docs/decisions/0032-what-a-release-is.md.
"""
