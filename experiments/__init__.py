"""The paper's section 7, redrawn with the real code: `python -m experiments --help`."""
