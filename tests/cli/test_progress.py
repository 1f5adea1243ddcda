"""The elapsed time of a long command: logged where the standard error stream is no terminal."""

import itertools
import logging
import threading

import pytest

from shufflebounds.cli.output import interruptible


@pytest.fixture
def logged(monkeypatch):
    """Return an event that is set by the first message, and the list of messages; the first one is due at once."""
    monkeypatch.setattr(interruptible, "FIRST_MESSAGE", 0.0)
    monkeypatch.setattr(interruptible, "CALM_SECONDS", 0.0)
    seen, found = threading.Event(), []

    class Handler(logging.Handler):
        def emit(self, record):
            found.append((record.levelno, record.getMessage()))
            seen.set()

    handler, level = Handler(), interruptible.LOGGER.level
    interruptible.LOGGER.addHandler(handler)
    interruptible.LOGGER.setLevel(logging.INFO)
    yield seen, found
    interruptible.LOGGER.removeHandler(handler)
    interruptible.LOGGER.setLevel(level)


def test_a_long_command_logs_its_time(logged):
    seen, found = logged
    interruptible.watched(lambda: seen.wait(60), "compare")
    level, text = found[0]
    assert level == logging.INFO
    assert text.startswith("compare: ")
    assert text.endswith(" s so far; Ctrl-C stops")


def test_a_terminal_has_no_messages(logged, monkeypatch):
    _, found = logged
    ticks = itertools.count()
    asked = threading.Event()

    class Clock:
        def refresh(self):
            if next(ticks) == 2:
                asked.set()

        def close(self):
            pass

    monkeypatch.setattr(interruptible, "_clock", Clock)
    interruptible.watched(lambda: asked.wait(60), "compare")
    assert found == []


def test_the_command_writes_messages_where_no_handler_is(monkeypatch, capsys):
    logger = logging.getLogger("shufflebounds.test")
    logger.propagate = False
    monkeypatch.setattr(interruptible, "LOGGER", logger)
    interruptible.log_to_stderr()
    interruptible.log_to_stderr()
    logger.info("compare: %d s so far", 20)
    assert capsys.readouterr().err == "shufflebounds: compare: 20 s so far\n"
    assert len(logger.handlers) == 1
