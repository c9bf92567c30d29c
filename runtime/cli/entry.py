"""Where the process enters: from here on Ctrl-C ends it quietly, also while the command line is being imported."""

__all__ = ["main"]

INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process and return the exit code."""
    try:
        from recallscope.runtime.cli import main as command_line  # noqa: PLC0415 - an interrupt of it is caught here

        return command_line.main()
    except KeyboardInterrupt:
        return INTERRUPTED
