"""Who is there, and what they may do.

Read `login.py` first: it drives the SASL machines of `protocol` and decides the principal. `credentials.py` finds what
a SCRAM login is checked against and `digest.py` what one by DIGEST-MD5 is, both among the tokens of `login_tokens.py`;
`derivation.py` makes and keeps the SCRAM credentials of tokens, `bearer.py` judges the tokens of OAUTHBEARER by the
keys of `jwks.py`, `kerberos.py` runs GSSAPI through `gss.py` and names principals by the rules of `kerberos_names.py`,
`revocations.py` makes a revocation count on all workers of a node at once.

`authorizer.py` says who may do what, by the ACLs that `acl_cache.py` has in memory. `acls.py` are the words of an ACL,
`acl_filters.py` says which ones are meant, `acl_manager.py` creates, lists and deletes them, and `acl_store.py` is the
interface of where they are kept.
"""
