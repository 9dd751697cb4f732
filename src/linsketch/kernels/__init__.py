"""Compiled loops, loaded on first use: the only place that imports numba.

`kernels.peel.peeler(...)` imports `linsketch.kernels.peel` when it is first asked for, so that
`import linsketch` stays fast.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["cores", "counters", "encode", "masks", "packing", "peel", "rows", "sampling", "table"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
