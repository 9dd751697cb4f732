"""`python -m linsketch`, and the script `linsketch`."""

import sys


def main() -> None:
    """Run the command line; an early Ctrl-C, while it is being loaded, ends it without a word."""
    try:
        from linsketch.cli import app
    except KeyboardInterrupt:
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
