"""Shared settings: hypothesis without deadlines (a first call may import), the same examples in every run.

A run draws 25 examples a property, one that names the marker hypothesis (`-m hypothesis`) 200.
"""

import signal

from hypothesis import settings

settings.register_profile("everyday", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("whole", deadline=None, max_examples=200, derandomize=True)


def pytest_configure(config):
    # a shell has what it starts in the background ignore Ctrl-C, which some tests send
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("whole" if "hypothesis" in config.option.markexpr else "everyday")
