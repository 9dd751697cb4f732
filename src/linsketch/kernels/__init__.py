"""Compiled loops, loaded on first use: the only place that imports numba.

`kernels.iblt.encoder(...)` imports `linsketch.kernels.iblt` when it is first asked for, so that
`import linsketch` stays fast.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["cores", "iblt", "packing", "sampling"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
