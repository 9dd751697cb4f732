"""HTML in small pieces, for notebooks and pages: items come from strangers' devices."""

from collections.abc import Iterable, Sequence
from html import escape


def printable(text: object) -> str:
    """Return a text without control characters: items come from strangers' devices."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0) -> str:
    """Return an HTML table; `more` rows are not shown."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(printable(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    rest = f"<tr><td colspan={len(heads)}>… {more:,} more</td></tr>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}{rest}</tbody></table>"
