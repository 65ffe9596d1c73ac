import logging

from kafka_dt.log import OneLineFormatter


def formatted(message: str, *arguments: object, error: BaseException | None = None) -> str:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("name", logging.INFO, "path", 1, message, arguments, info)
    return OneLineFormatter("%(levelname)s %(message)s").format(record)


def test_a_name_with_line_ends_cannot_forge_a_line() -> None:
    forged = "bob\n2026-01-01 INFO \x1b[2Jforged\u2028"
    assert formatted("login of %s", forged) == "INFO login of bob\\n2026-01-01 INFO \\x1b[2Jforged\\u2028"


def test_a_traceback_keeps_its_lines() -> None:
    text = formatted("it failed", error=ValueError("why"))
    assert text.splitlines()[0] == "INFO it failed"
    assert text.splitlines()[-1] == "ValueError: why"


def test_letters_of_all_languages_stay_as_they_are() -> None:
    assert formatted("%s", "Zoë 🙂 名") == "INFO Zoë 🙂 名"
