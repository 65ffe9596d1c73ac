"""The public names of protocol.sasl."""

import protocol.sasl


def test_the_public_names_are_these() -> None:
    assert sorted(protocol.sasl.__all__) == [
        "BearerAccepted",
        "BearerRejected",
        "BearerVerdict",
        "Challenge",
        "CredentialRequest",
        "DIGEST_MD5",
        "DigestServer",
        "Failure",
        "GSSAPI",
        "GssContext",
        "GssRefused",
        "GssapiServer",
        "MAX_ITERATIONS",
        "MalformedDigestMessage",
        "MalformedScramMessage",
        "NO_EXTENSIONS",
        "OAUTHBEARER",
        "OAuthBearerServer",
        "Outcome",
        "PLAIN",
        "PlainServer",
        "SaslError",
        "ScramClient",
        "ScramCredential",
        "ScramError",
        "ScramKeys",
        "ScramMechanism",
        "ScramServer",
        "ServerMechanism",
        "ServerNonceMismatch",
        "ServerRejected",
        "ServerSignatureMismatch",
        "Success",
        "TOKENAUTH",
        "UnacceptableIterations",
        "VerdictRequest",
        "derive_credential",
        "derive_keys",
        "keys_of",
        "plain_message",
    ]
    assert all(hasattr(protocol.sasl, name) for name in protocol.sasl.__all__)
