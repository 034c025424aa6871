"""ddpdoctor finds out why DistributedDataParallel training hangs, crashes or goes wrong.

`ddpdoctor.api` has what programs may call, `ddpdoctor.watch.start()` begins to watch a rank.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which a watched process need not import for this
if TYPE_CHECKING:
    from types import ModuleType

    from ddpdoctor import api, watch

__all__ = ["__version__", "api", "watch"]
__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """Import the public modules when they are first asked for: what starts pays for neither."""
    import importlib

    if name in ("api", "watch"):
        return importlib.import_module(f"ddpdoctor.{name}")
    raise AttributeError(f"module 'ddpdoctor' has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext ddpdoctor`: see `ddpdoctor.notebook`."""
    from ddpdoctor import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext ddpdoctor`."""
    from ddpdoctor import notebook

    notebook.unload(shell)
