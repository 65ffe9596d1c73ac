"""Open ports: which connections a node accepts, and when.

Read `listener.py` first. `open_port.py` is one port of one worker. `admission.py` refuses connections beyond a limit,
`gates.py` lets further ones wait, `rates.py` counts how often something happens, `deadlines.py` ends logins that take
too long, and `encryption.py` is what an encrypted listener has beside.
"""
