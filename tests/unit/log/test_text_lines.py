"""A line of text is one line, and no longer than an operator can read."""

import logging

import pytest

from kafka_dt.log import ComposedText
from kafka_dt.log.cutting import CUT, LONGEST_MESSAGE, LONGEST_VALUE, LONGEST_WORDS, TRACEBACK_LINES
from kafka_dt.log.text import OneLineFormatter

LONG = "x" * 300_000


def formatted(message: str, *arguments: object, error: BaseException | None = None, guarded: bool = False) -> str:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("name", logging.INFO, "path", 1, message, arguments, info)
    return OneLineFormatter("worker 0", guarded=guarded).format(record).partition(" [worker 0] ")[2]


def guarded(message: str, *arguments: object, error: BaseException | None = None) -> str:
    return formatted(message, *arguments, error=error, guarded=True)


def test_a_name_with_line_ends_cannot_forge_a_line() -> None:
    forged = "bob\n2026-01-01 INFO \x1b[2Jforged\u2028"
    assert formatted("login of %s", forged) == "login of bob\\n2026-01-01 INFO \\x1b[2Jforged\\u2028"


def test_a_traceback_keeps_its_lines() -> None:
    text = formatted("it failed", error=ValueError("why"))
    assert text.splitlines()[0] == "it failed"
    assert text.splitlines()[-1] == "    ValueError: why"


@pytest.mark.parametrize("guarded", [False, True])
def test_no_line_of_a_traceback_looks_like_a_line_of_the_log(*, guarded: bool) -> None:
    error = ValueError("bob\n2026-01-01 INFO forged\r\x1b[2J\u2028\ud800\u202e")
    lines = formatted("it failed", error=error, guarded=guarded).split("\n")
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1] == "    2026-01-01 INFO forged\\r\\x1b[2J\\u2028\\ud800\\u202e"


def test_letters_of_all_languages_stay_as_they_are() -> None:
    assert formatted("%s", "Zoë 🙂 名") == "Zoë 🙂 名"


# Guarded processes


@pytest.mark.parametrize(
    ("value", "characters"),
    [(LONG, LONGEST_VALUE), (ComposedText(LONG), LONGEST_WORDS), (ValueError(LONG), LONGEST_WORDS)],
)
def test_a_value_is_cut(value: object, characters: int) -> None:
    assert guarded("%s may not", value) == f"{'x' * (characters - 1)}{CUT} may not"


def test_a_value_that_is_quoted_keeps_both_its_quotes() -> None:
    assert guarded("%r may not", LONG) == f"'{'x' * (LONGEST_VALUE - 1)}{CUT}' may not"


def test_values_by_name_are_cut() -> None:
    assert guarded("%(who)s %(times)d", {"who": LONG, "times": 3}) == f"{'x' * (LONGEST_VALUE - 1)}{CUT} 3"


def test_numbers_and_short_values_stay_as_they_are() -> None:
    assert guarded("%d %.1f 0x%x %s %r %s", 3, 2.5, 255, None, "a", b"b") == "3 2.5 0xff None 'a' b'b'"


def test_a_message_without_values_is_cut() -> None:
    assert guarded(LONG) == f"{'x' * (LONGEST_MESSAGE - 1)}{CUT}"


def test_a_traceback_is_cut_to_its_last_lines() -> None:
    lines = guarded("it failed", error=ValueError("\n".join(map(str, range(1000))) + LONG)).split("\n")
    assert len(lines) == TRACEBACK_LINES + 2
    assert lines[1] == f"    {CUT}"
    assert max(map(len, lines)) == len("    ") + LONGEST_MESSAGE


def test_the_record_of_a_guarded_line_stays_as_it_is_for_other_handlers() -> None:
    record = logging.LogRecord("name", logging.INFO, "path", 1, "%s", (LONG,), None)
    OneLineFormatter("worker 0", guarded=True).format(record)
    assert record.getMessage() == LONG
