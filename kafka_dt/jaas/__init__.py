"""JAAS: the login modules and options that Kafka's `sasl.jaas.config` and Java's login files hold.

`parse_login_module` reads the value of one `sasl.jaas.config` (on a listener:
`listener.name.<name>.<mechanism>.sasl.jaas.config`) and returns its single module; `parse_login_file`
reads a file as named by `java.security.auth.login.config`, with its sections (`KafkaServer`, `Client`).
`LoginModule.line` writes a module so that Kafka reads the same back.

Read `modules.py` first; `words.py` is Java's tokenizer.

The words are those of Java's StreamTokenizer as Kafka sets it up: a value that starts with a digit, a
dot or a dash, or that holds anything but letters, digits, `_`, `$`, `.` and `-`, needs quotes; `/`
outside quotes starts a comment. Limits: Java's `${property}` is not expanded, and a quoted text that the
end of the line cuts off is an error here while Java takes what it has so far. Errors tell a position and
never a word of the text: it may be a password.

Source: org.apache.kafka.common.security.JaasConfig and org.apache.kafka.common.security.JaasContext,
java.io.StreamTokenizer, javax.security.auth.login.Configuration.
"""

from kafka_dt.jaas.modules import (
    KERBEROS_LOGIN_MODULE,
    OAUTHBEARER_LOGIN_MODULE,
    PLAIN_LOGIN_MODULE,
    SCRAM_LOGIN_MODULE,
    ControlFlag,
    LoginModule,
    parse_login_file,
    parse_login_module,
)
from kafka_dt.jaas.words import JaasError

__all__ = [
    "KERBEROS_LOGIN_MODULE",
    "OAUTHBEARER_LOGIN_MODULE",
    "PLAIN_LOGIN_MODULE",
    "SCRAM_LOGIN_MODULE",
    "ControlFlag",
    "JaasError",
    "LoginModule",
    "parse_login_file",
    "parse_login_module",
]
