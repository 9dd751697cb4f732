"""Line charts over rounds, as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 420, 200
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 38, 24


@dataclass(frozen=True)
class Series:
    """A line; marked points are drawn hollow."""

    name: str
    values: Sequence[float]
    dashed: bool = False
    marked: Sequence[bool] = field(default=())


def ticks(most: float, wanted: int = 4) -> list[float]:
    """Return round numbers from 0 to `most` or a little above.

    >>> ticks(83)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    raw = max(most, 1e-9) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.95)
    return [step * i for i in range(math.ceil(most / step * 0.999) + 1)] or [0.0]


@dataclass(frozen=True)
class LogScale:
    """Places on a logarithmic axis, in percent of its width."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a value lies; what is off the axis lies at its end."""
        inside = min(max(value, self.low), self.high)
        return 100 * math.log(inside / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Return 1, 2 and 5 times powers of ten; of a long axis, the powers only.

        >>> LogScale(30, 700).ticks()
        [50, 100, 200, 500]
        """
        steps = (1, 2, 5) if self.high < 40 * self.low else (1,)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        return [v for p in powers for s in steps if self.low <= (v := s * 10**p) <= self.high]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def chart(rounds: Sequence[int], lines: Sequence[Series], note: str = "") -> str:
    """Draw lines over rounds, from 0 on."""
    marks = ticks(max([value for line in lines for value in line.values] + [1]))
    top = marks[-1]

    def x(index: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / max(len(rounds), 1)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top

    title = ", ".join(line.name for line in lines)
    parts = [
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{escape(title)} by round'>",
        f"<text class=title x={LEFT} y=14>{escape(title)}</text>",
    ]
    parts += [
        f"<line class=grid x1={LEFT} x2={WIDTH - RIGHT} y1={y(mark):.1f} y2={y(mark):.1f} />"
        f"<text class=tick text-anchor=end x={LEFT - 6} y={y(mark) + 4:.1f}>{_short(mark)}</text>"
        for mark in marks
    ]
    every = max(1, math.ceil(len(rounds) / 10))
    for index, number in enumerate(rounds):
        if index % every == 0 or (index == len(rounds) - 1 and index % every >= every / 2):
            at = f"x={x(index):.1f} y={HEIGHT - 8}"
            parts.append(f"<text class=tick text-anchor=middle {at}>{number}</text>")
    for line in lines:
        points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(line.values))
        parts.append(
            f"<polyline class='line{' dashed' if line.dashed else ''}' points='{points}' />"
        )
        if not line.dashed:
            for i, value in enumerate(line.values):
                hollow = " hollow" if i < len(line.marked) and line.marked[i] else ""
                parts.append(
                    f"<circle class='point{hollow}' cx={x(i):.1f} cy={y(value):.1f} r=3>"
                    f"<title>round {rounds[i]}: {value:,.6g}</title></circle>"
                )
    if note:
        parts.append(f"<text class=tick x={LEFT} y=28>{escape(note)}</text>")
    return "".join(parts) + "</svg>"
