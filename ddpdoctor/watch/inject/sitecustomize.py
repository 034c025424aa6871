"""What every Python process of a watched job imports first, as its folder leads PYTHONPATH.

It leaves the process as it would have been: it runs the user's own sitecustomize, and takes this
folder off the path again. The environment keeps it, for the processes that this one starts.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _watch() -> None:
    if not os.environ.get("DDPDOCTOR_RUN") or os.environ.get("DDPDOCTOR_DISABLE") == "1":
        return
    # First on the path for a moment: the job may have another ddpdoctor, or none.
    sys.path.insert(0, str(_HERE.parents[2]))
    try:
        from ddpdoctor.watch import arrival

        arrival.await_torch(Path(os.environ["DDPDOCTOR_RUN"]))
    except Exception:
        return
    finally:
        del sys.path[0]


def _run_the_users_own() -> None:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    spec.loader.exec_module(module)


_watch()
_run_the_users_own()
