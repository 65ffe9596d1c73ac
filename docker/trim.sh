#!/bin/sh
# Take out of an environment what a server never reads: `trim.sh DIRECTORY`.
set -eu
packages=$(echo "$1"/lib/python3*/site-packages)
find "$packages" -type d -name tests -prune -exec rm -r {} +
# Types, and the sources of modules that are compiled.
find "$packages" -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.h' \) -delete
# Symbols for debuggers: uvloop has 12 MB of them.
if command -v strip >/dev/null; then
	find "$packages" -type f -name '*.so' -exec strip --strip-unneeded {} +
fi
