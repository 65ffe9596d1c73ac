"""The conditions and expressions that the analyses share, by name.

    events.where(of_type(EventType.LOGIN) & went_well())
    usage.withColumn("subnet", subnet(F.col("address")))

Everything but `rows_of` and `each_row_of` is a function of Spark SQL, and means the same to Sail: regular expressions
have no classes of letters, words and line ends, which are others in Java than in Rust. The session's time zone has to
be UTC, as `kafka_dt.pipeline.session` sets it: instants are shown as text.

The place and the kind of a client leave out what changes from one start to the next. A pod that starts again has
another address in the same network, and another random part of its name. So addresses are compared by their zone
(`zones.py`) or their subnet (/24 of IPv4, /64 of IPv6), and client ids by their shape: `etl-7f9c4b-x2k9q` and
`etl-5d8c7d-b7w4n` are both `etl-#`; `clicks2-0` is `clicks#`. Addresses come as getpeername gives them, IPv6 compressed
and in small letters. Other text is a place of its own.

Source: kafka_dt/audit/event.py; RFC 4291, section 2.2; RFC 5952
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window, is_remote
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import TimestampType

from kafka_dt.audit import EventType, Outcome
from kafka_dt.pipeline.table.schema import completed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.window import WindowSpec

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_HOUR_S: Final = 3600
DAY_H: Final = 24
"""Hours of a day."""
INSTANT_FORMAT: Final = "yyyy-MM-dd HH:mm:ss 'UTC'"
"""How evidence shows an instant."""
_LONGEST_SHOWN: Final = 120
"""Characters of a name in evidence; clients choose some, and a node takes thousands."""
TOKEN_EVENTS: Final = (
    EventType.LOGIN,
    EventType.TOKEN_CREATED,
    EventType.TOKEN_RENEWED,
    EventType.TOKEN_EXPIRED,
    EventType.TOKEN_REMOVED,
)
"""What happens to a token."""
UNKNOWN: Final = "unknown"
"""Of a client that does not say what it is."""
_LONGEST_NAME: Final = 200
"""Characters of a client id or a name that count. Clients choose them, and the time that a regular expression takes for
a long one grows with the square of its length."""
_IPV4: Final = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}\z"
_CARRIERS: Final = r"100\.(?:6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])"
"""How addresses begin that providers share among their customers: 100.64.0.0/10 (RFC 6598)."""
_PRIVATE: Final = (
    rf"^(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2[0-9]|3[01])|{_CARRIERS})\."
    r"|^(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]|0):"
)
"""Private, shared, local and own addresses: RFC 1918, 6598, 3927, 4193, 1122 and 4291."""
_MAPPED: Final = "::ffff:"
"""What stands before an IPv4 address on a socket for both."""
_IPV6_GROUPS: Final = 8
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""One in twenty has a group of letters alone."""
_NUMBERED: Final = r"(?=[a-z]*[aeiou])(?=[a-z]*[g-z])([a-z]{4,})[0-9]+"
"""A word and a number. What Kubernetes draws has no vowel, hex digits have no letter behind f."""
_HEX: Final = r"(?<=[-_.:/])[a-f]{6,}"
"""One number of six hex digits in 360 has letters alone."""
_DRAWN: Final = r"(?!https|mssql|grpcs|xhtml)[bcdfghjklmnpqrstvwxz]{5}(?![a-z0-9])"
"""The random part of a pod's name: more than one in five is without a digit. Some words are without a vowel, too."""
_POD: Final = rf"(?<=[-_]){_DRAWN}(?=$|[-_.][0-9]+$)"
"""At the end of a client id; a client may have added its own number."""
_VARIABLE: Final = rf"(?<![a-z0-9])(?:{_UUID}|{_NUMBERED}|[a-z]*[0-9][a-z0-9]*|{_HEX}|{_POD})(?![a-z0-9])"
_REPEATED: Final = rf"#(?:[-_.:/]+#|[-_]{_DRAWN})+"
"""A negative number has a second hyphen, as Spark's ids of groups have."""

_LINE_ENDS: Final = "\n\r\u0085\u2028\u2029"
"""Java's; `$` means the place before one as well, but not everywhere the same one."""
_GIVEN: Final = (
    rf"(?s)^({UNKNOWN}|#|rdkafka|sarama|kgo|kafkajs|((console-)?consumer|producer|adminclient|perf-producer-client)(-.*|#)?"
    r"|(kafka-python|aiokafka|confluent-kafka|kafka-go)([^a-z0-9_].*)?)\z"
)
"""Kinds of client ids that libraries and Kafka's own commands give (`client.id` in their manuals)."""


def of_type(*types: EventType) -> Column:
    """Whether an event is of one of these types."""
    return F.col("type").isin([each.value for each in types])


def went_well() -> Column:
    """Whether what was asked for was done."""
    return F.col("outcome") == Outcome.OK.value


def ok(*types: EventType) -> Column:
    """Whether an event is of one of these types and was done."""
    return of_type(*types) & went_well()


def login_by_token() -> Column:
    """Whether an event is a login that succeeded by a token."""
    return ok(EventType.LOGIN) & F.col("token_id").isNotNull()


def until(events: DataFrame, at: datetime) -> DataFrame:
    """Leave out what happened after `at`; whole days of it are not read."""
    instant = F.lit(at)
    return events.where((F.col("date") <= F.to_date(instant)) & (F.col("time") <= instant))


def union(first: DataFrame, second: DataFrame) -> DataFrame:
    """Put the rows of two frames together; what one lacks is null, of the type that it has in the other."""
    return completed(first, second.schema).unionByName(completed(second, first.schema))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Collect a frame that was aggregated or limited before.

    Instants travel as milliseconds, because timestamps would arrive in the time zone of this machine; they become
    datetimes in UTC.
    """
    plain, instants = _without_instants(frame)
    return [_in_utc(row, instants) for row in plain.collect()]


def each_row_of(frame: DataFrame) -> Iterator[dict[str, Any]]:
    """Give the same of a frame of any size; the driver holds a part of it at a time."""
    plain, instants = _without_instants(frame)
    return (_in_utc(row, instants) for row in plain.toLocalIterator())


def _without_instants(frame: DataFrame) -> tuple[DataFrame, Sequence[str]]:
    """Turn instants into milliseconds, and name their columns."""
    instants = [each.name for each in frame.schema if isinstance(each.dataType, TimestampType)]
    columns = [F.unix_millis(name).alias(name) if name in instants else F.col(name) for name in frame.columns]
    return frame.select(*columns), instants


def _in_utc(row: Row, instants: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = row.asDict(recursive=True)
    for name in instants:
        found[name] = None if found[name] is None else EPOCH + timedelta(milliseconds=found[name])
    return found


def hour_number(instant: Column) -> Column:
    """Give the hour of an instant, as a number since 1970."""
    return F.floor(F.unix_seconds(instant) / F.lit(_HOUR_S))


def hours_at_work(*, around: int = 1) -> Column:
    """Aggregate the hours of the day (UTC) between `first_seen` and `last_seen`, which are on one day, as an array.

    Args:
        around: how many hours before and after count, too.
    """
    hours = F.sequence(F.hour("first_seen") - F.lit(around), F.hour("last_seen") + F.lit(around))
    of_day = F.transform(hours, lambda hour: F.pmod(hour, F.lit(DAY_H)))
    return F.array_distinct(F.flatten(F.collect_set(of_day)))


def first_and_last(first: str = "first_seen", last: str = "last_seen") -> tuple[Column, Column]:
    """Aggregate the columns `first_seen` and `last_seen`."""
    return F.min(first).alias("first_seen"), F.max(last).alias("last_seen")


def with_most(value: str, *by: str) -> Column:
    """Aggregate the value of the row with the largest `by`; of several the largest value, so that reports agree.

    Two values are of the same row if the second is with the most by the first as well:

        with_most("token_id", "logins"), with_most("address", "logins", "token_id")
    """
    return F.max_by(value, ordering(*by, value))


def of_first(value: str, *by: str) -> Column:
    """Aggregate the value of the row with the smallest `by`; of several the smallest value, as `with_most` does."""
    return F.min_by(value, ordering(*by, value))


def ordering(*by: Column | str) -> Column:
    """Order rows by some values, nulls before all others, for `F.max_by` and `F.min_by`.

    Of two structs with a null in the same place, Sail knows no larger one.
    """
    columns = (F.col(each) if isinstance(each, str) else each for each in by)
    return F.struct(*(part for column in columns for part in (column.isNotNull(), column)))


def distinct_over(values: Column | str, *keys: Column | str) -> Column:
    """Count different values in the rows with the same keys; nulls are left out.

    The ranks of a row from both ends add up to that. A set of values in each row would take memory that grows with the
    square of the rows: of ten million events, some gigabytes.
    """
    values = F.col(values) if isinstance(values, str) else values
    same = Window.partitionBy(*keys)
    from_least = F.dense_rank().over(same.orderBy(values.asc_nulls_first()))
    from_most = F.dense_rank().over(same.orderBy(values.desc_nulls_last()))
    return from_least + from_most - 1 - F.max(values.isNull().cast("int")).over(same)


def distinct_within(values: Column | str, window: WindowSpec) -> Column:
    """Count different values in a window of few rows, such as those of some hours; nulls are left out.

    Each row has the set of them. Sail has no set where there is no value.
    """
    return F.coalesce(F.size(F.collect_set(values).over(window)), F.lit(0))


def nth(values: Column | str, number: int) -> Column:
    """Aggregate the n-th smallest value, equal ones counted each; null if there are fewer."""
    return F.get(F.array_sort(F.collect_list(values)), F.lit(number - 1))


def at_share(values: Column | str, share: float) -> Column:
    """Aggregate the smallest value that is not below this share of all values; with 0.5 the middle one."""
    return F.element_at(F.array_sort(F.collect_list(values)), F.ceil(F.count(values) * share).cast("int"))


def distinct(values: Column | str) -> Column:
    """Aggregate different values, sorted; nulls are left out."""
    return F.array_sort(F.collect_set(values))


def distinct_in(arrays: Column | str) -> Column:
    """Aggregate the different values of all arrays, sorted."""
    return F.array_sort(F.array_distinct(F.flatten(F.collect_set(arrays))))


def as_text(instant: Column) -> Column:
    """Show an instant as people read it; null stays null."""
    return F.date_format(instant, INSTANT_FORMAT)


def first_of(values: Column, limit: int = 5) -> Column:
    """Show the first values of an array as text; long ones are cut."""
    return F.array_join(F.transform(F.slice(values, 1, limit), _cut), ", ")


def some(values: Column, limit: int = 5) -> Column:
    """Show the first values of a sorted array as text, and that there are more of them."""
    shown = first_of(values, limit)
    more = F.when(F.size(values) > limit, F.concat(F.lit(" and "), F.size(values) - limit, F.lit(" more")))
    return F.concat(shown, F.coalesce(more, F.lit("")))


def _cut(text: Column) -> Column:
    return F.when(
        F.length(text) > _LONGEST_SHOWN, F.concat(F.substring(text, 1, _LONGEST_SHOWN), F.lit("…"))
    ).otherwise(text)


def subnet(address: Column) -> Column:
    """Give the network of an address: `10.1.2.0/24`, `2001:db8:0:1::/64`; other text as it is, null as `unknown`."""
    return _network(address, 24, 64)


def middle_network(address: Column) -> Column:
    """Give the network of 16 subnets, of IPv6 256: `10.1.16.0/20`, `2001:db8:0:100::/56`; other text as `subnet`."""
    return _network(address, 20, 56)


def wide_network(address: Column) -> Column:
    """Give the large network of an address: `10.1.0.0/16`, `2001:db8:0::/48`; other text as `subnet` does."""
    return _network(address, 16, 48)


def widest_network(address: Column) -> Column:
    """Give the network of 16 large ones: `10.16.0.0/12`, `2001:db8:10::/44`; other text as `subnet` does."""
    return _network(address, 12, 44)


def is_public(network: Column) -> Column:
    """Whether a network, as `wide_network` gives it, is one of the Internet; other text is not."""
    is_network = network.rlike(r"^[0-9.]+/") | network.contains("::/")
    return is_network & ~network.rlike(_PRIVATE)


def is_carriers(network: Column) -> Column:
    """Whether a network is of the addresses that providers share among their customers (RFC 6598, 100.64.0.0/10)."""
    return network.rlike(rf"^{_CARRIERS}\.")


def host(address: Column) -> Column:
    """Give what stands for a host: an address of IPv4, and the network of one of IPv6, of which a host has many."""
    return F.when(address.contains(":"), subnet(address)).otherwise(address)


def address_key(address: Column) -> Column:
    """Give an address as 32 hex digits, in the order of the addresses; null if it is none.

    An IPv4 address stands behind `::ffff:0:0/96`.
    """
    plain = _plain(address)
    ipv4 = F.array_join(F.transform(F.split(plain, r"\."), lambda part: _hex(part.cast("int"), 2)), "")
    ipv6 = F.array_join(F.transform(_groups(plain), lambda group: F.lpad(group, 4, "0")), "")
    return F.when(plain.rlike(_IPV4), F.concat(F.lit(f"{0xFFFF:024x}"), ipv4)).when(plain.contains(":"), ipv6)


def _plain(address: Column) -> Column:
    without_scope = F.substring_index(F.lower(address), "%", 1)
    # Regular expressions take most of the time where a million places are found: one is used where it may match only.
    is_mapped = without_scope.startswith(_MAPPED) & without_scope.rlike(rf"^{_MAPPED}[0-9.]+\z")
    plain = F.when(is_mapped, F.substring_index(without_scope, ":", -1)).otherwise(without_scope)
    return plain.cast("string")  # Sail does not split what `substring_index` gives unless it is cast


def _hex(number: Column, digits: int) -> Column:
    return F.lpad(F.lower(F.hex(number)), digits, "0")


def _network(address: Column, ipv4_bits: int, ipv6_bits: int) -> Column:
    plain = _plain(address)
    whole, bits = divmod(ipv4_bits, 8)
    head = F.substring_index(plain, ".", whole)
    if bits:
        cut = F.split(plain, r"\.").getItem(whole).cast("int").bitwiseAND(0x100 - (0x100 >> bits))
        head, whole = F.concat(head, F.lit("."), cut), whole + 1
    ipv4 = F.concat(head, F.lit(".0" * (4 - whole) + f"/{ipv4_bits}"))
    whole, bits = divmod(ipv6_bits, 16)
    groups = F.slice(_groups(plain), 1, whole)
    if bits:
        group = F.conv(F.get(_groups(plain), F.lit(whole)), 16, 10).cast("int")
        groups = F.concat(groups, F.array(F.lower(F.hex(group.bitwiseAND(0x10000 - (0x10000 >> bits))))))
    ipv6 = F.concat(F.array_join(groups, ":"), F.lit(f"::/{ipv6_bits}"))
    return F.coalesce(F.when(plain.rlike(_IPV4), ipv4).when(plain.contains(":"), ipv6).otherwise(plain), F.lit(UNKNOWN))


def client_shape(client_id: Column) -> Column:
    """Give a client id without its numbers and random parts; null is `unknown`."""
    name = F.translate(F.lower(shortened(client_id)), _LINE_ENDS, " " * len(_LINE_ENDS))
    if is_remote():
        words = F.udf(_without_variables, "string")(name)
    else:
        words = F.regexp_replace(F.regexp_replace(name, _VARIABLE, "$1#"), _REPEATED, "#")
    return F.coalesce(words, F.lit(UNKNOWN))


def _without_variables(name: str | None) -> str | None:
    """Do the same in Python: Sail's regular expressions do not look around."""
    return None if name is None else re.sub(_REPEATED, "#", re.sub(_VARIABLE, r"\g<1>#", name))


def is_given(client: Column) -> Column:
    """Whether a kind of client id is one that libraries and Kafka's own commands give, which tell nothing."""
    return client.rlike(_GIVEN)


def software(name: Column) -> Column:
    """Give what a client calls its library, `unknown` if it does not."""
    return F.coalesce(shortened(name), F.lit(UNKNOWN))


def shortened(name: Column) -> Column:
    """Cut a name that a client chose; null stays null."""
    # To count the bytes takes no time, to count the characters does.
    is_long = F.octet_length(name) > _LONGEST_NAME
    return F.when(is_long, F.substring(name, 1, _LONGEST_NAME)).otherwise(name)


def _groups(ipv6: Column) -> Column:
    """Write out the zero groups that `::` stands for."""
    head = _split(F.substring_index(ipv6, "::", 1))
    tail = _split(F.when(ipv6.contains("::"), F.substring_index(ipv6, "::", -1)).otherwise(""))
    zeros = F.array_repeat(F.lit("0"), F.lit(_IPV6_GROUPS) - F.size(head) - F.size(tail))
    return F.concat(head, zeros, tail)


def _split(groups: Column) -> Column:
    text = groups.cast("string")  # as in `_plain`
    return F.when(text == "", F.array().cast("array<string>")).otherwise(F.split(text, ":"))
