"""`python -m linsketch` is the command line."""

from linsketch.cli import app

if __name__ == "__main__":
    app()
