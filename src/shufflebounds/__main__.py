"""Run the command: ``python -m shufflebounds``, and the script of that name."""

import os
import sys

from shufflebounds._base import __version__


def _stop(number: int, frame: object) -> None:
    os.write(2, b"shufflebounds: interrupted\n")
    os._exit(130)


def main() -> int:
    """Run the command with the arguments of the process.

    Returns
    -------
    int
        Exit code of :func:`shufflebounds.cli.main`; 130 after Ctrl-C, also while modules are still imported.
    """
    if sys.argv[1:] == ["--version"]:
        # The version is printed before any further import, because the import of NumPy takes ten times as long.
        print(f"shufflebounds {__version__}")
        return 0
    import signal
    import threading

    quiet = threading.current_thread() is threading.main_thread()
    # During the imports Ctrl-C ends the process (`_stop`): a KeyboardInterrupt raised within an import may be converted to another
    # exception, with a traceback of several pages.
    before = signal.signal(signal.SIGINT, _stop) if quiet else None
    if "numpy" not in sys.modules:
        # No command multiplies matrices, and starting the threads of BLAS takes as long as importing NumPy.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from shufflebounds.cli import main as command

    if quiet:
        signal.signal(signal.SIGINT, before)
    return command()


if __name__ == "__main__":
    sys.exit(main())
