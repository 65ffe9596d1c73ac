"""Kerberos on one listener.

Read `contexts.py` first: it makes the contexts of logins through `gss.py`, which alone imports the extra gssapi.
`names.py` makes principals of Kerberos names, and `settings.py` reads what is set for a listener.
"""
