"""The Python client for delegation tokens, of kafka-dt and of Apache Kafka's own brokers.

Read `token_client.py` first: TokenClient with create, renew, expire and describe. `admin_client.py` manages SCRAM users
and ACLs. `config.py` reads Kafka's client properties; `session_client.py`, `session.py`, `connection.py`, `requests.py`
and `login.py` speak the protocol; `renewal.py` keeps a token alive; `tokens.py` is the token, also as the settings of
other Kafka clients; `errors.py` draws what can go wrong.

    async with TokenClient.from_config(properties) as client:
        token = await client.create()
        async with client.keep_renewed(token):
            run_job(settings(token, "aiokafka"))
"""

from kafka_dt.client.admin_client import Acl, AclFilter, AdminClient
from kafka_dt.client.bearer import BearerLogin, BearerTokenMissing
from kafka_dt.client.config import MECHANISMS, Address, ClientConfig, Credentials, parse_addresses
from kafka_dt.client.errors import (
    AclsDisabled,
    ClientConfigError,
    ClusterAuthorizationFailed,
    ConnectionFailed,
    ConnectionLost,
    InvalidArgument,
    InvalidPrincipalType,
    InvalidRequest,
    LoginFailed,
    LoginMissing,
    MechanismNotEnabled,
    NoServerReached,
    RequestRefused,
    RequestTimedOut,
    StorageNotReached,
    TokenAuthorizationFailed,
    TokenClientError,
    TokenExpired,
    TokenLimitExceeded,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
    TokensDisabled,
    TooManyCreates,
    UnexpectedAnswer,
    UnsupportedByServer,
)
from kafka_dt.client.kerberos import KerberosLogin
from kafka_dt.client.renewal import EndReason, Renewal, RenewalEnd
from kafka_dt.client.token_client import TokenClient
from kafka_dt.client.tokens import ClientKind, DelegationToken, hmac_from_base64, jaas_line, settings, spark_options
from kafka_dt.security_protocol import SecurityProtocol

__all__ = [
    "MECHANISMS",
    "Acl",
    "AclFilter",
    "AclsDisabled",
    "Address",
    "AdminClient",
    "BearerLogin",
    "BearerTokenMissing",
    "ClientConfig",
    "ClientConfigError",
    "ClientKind",
    "ClusterAuthorizationFailed",
    "ConnectionFailed",
    "ConnectionLost",
    "Credentials",
    "DelegationToken",
    "EndReason",
    "InvalidArgument",
    "InvalidPrincipalType",
    "InvalidRequest",
    "KerberosLogin",
    "LoginFailed",
    "LoginMissing",
    "MechanismNotEnabled",
    "NoServerReached",
    "Renewal",
    "RenewalEnd",
    "RequestRefused",
    "RequestTimedOut",
    "SecurityProtocol",
    "StorageNotReached",
    "TokenAuthorizationFailed",
    "TokenClient",
    "TokenClientError",
    "TokenExpired",
    "TokenLimitExceeded",
    "TokenNotFound",
    "TokenOwnerMismatch",
    "TokenRequestNotAllowed",
    "TokensDisabled",
    "TooManyCreates",
    "UnexpectedAnswer",
    "UnsupportedByServer",
    "hmac_from_base64",
    "jaas_line",
    "parse_addresses",
    "settings",
    "spark_options",
]
