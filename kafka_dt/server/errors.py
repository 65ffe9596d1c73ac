"""The table from the errors of the domain to Kafka's error codes.

Source: org.apache.kafka.common.protocol.Errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.store import AclError, AclStoreUnavailable, InvalidAcl
from kafka_dt.identity.credentials.scram_changes import (
    ChangedTwice,
    NoSuchCredential,
    ScramUserError,
    UnacceptableCredential,
    UnknownMechanism,
)
from kafka_dt.tokens import (
    InvalidPrincipalType,
    StoreUnavailable,
    TokenAuthorizationFailed,
    TokenError,
    TokenExpired,
    TokenLimitExceeded,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
    TokensDisabled,
    TokenTooLarge,
    TooManyCreates,
)

CODES: Final[Mapping[type[TokenError | AclError | ScramUserError], ErrorCode]] = {
    TokensDisabled: ErrorCode.delegation_token_auth_disabled,
    TokenNotFound: ErrorCode.delegation_token_not_found,
    TokenOwnerMismatch: ErrorCode.delegation_token_owner_mismatch,
    TokenRequestNotAllowed: ErrorCode.delegation_token_request_not_allowed,
    TokenAuthorizationFailed: ErrorCode.delegation_token_authorization_failed,
    TokenExpired: ErrorCode.delegation_token_expired,
    InvalidPrincipalType: ErrorCode.invalid_principal_type,
    # KIP-48 has no code for it. This one is not retriable, which is what matters to a client.
    TokenTooLarge: ErrorCode.invalid_request,
    # A broker says so of what its operator's policies do not allow. It is not retriable either.
    TokenLimitExceeded: ErrorCode.policy_violation,
    TooManyCreates: ErrorCode.throttling_quota_exceeded,
    # Retriable, and what a KRaft broker says while its controller cannot be reached.
    StoreUnavailable: ErrorCode.request_timed_out,
    AclStoreUnavailable: ErrorCode.request_timed_out,
    InvalidAcl: ErrorCode.invalid_request,
    UnknownMechanism: ErrorCode.unsupported_sasl_mechanism,
    UnacceptableCredential: ErrorCode.unacceptable_credential,
    ChangedTwice: ErrorCode.duplicate_resource,
    NoSuchCredential: ErrorCode.resource_not_found,
}


def error_code(error: TokenError | AclError | ScramUserError) -> ErrorCode:
    """Give Kafka's code of an error.

    Raises:
        KeyError: the error's type has no row; a test keeps that from happening.
    """
    return CODES[type(error)]
