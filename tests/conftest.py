"""Settings of all tests: hypothesis has no deadline, because a first call may import modules, and repeats the same examples.

hypothesis draws 25 examples for each property, and 200 with the option ``-m hypothesis``.
"""

import gc
import signal

from hypothesis import settings

settings.register_profile("everyday", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("whole", deadline=None, max_examples=200, derandomize=True)


def pytest_configure(config):
    # A shell makes its background processes ignore Ctrl-C, a signal that some tests send.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # What is collected and what tests keep stays: the collector of garbage would look through it again and again.
    gc.set_threshold(100_000, 50, 100)
    settings.load_profile("whole" if "hypothesis" in config.option.markexpr else "everyday")


def pytest_collection_finish():
    gc.freeze()
