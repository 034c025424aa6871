"""What a reproducer is written with: decorators, a few helpers, and `main` to run one alone.

    torchrun --nproc-per-node=4 reproducers/premature_sampler.py broken

A variant is a plain function that every rank calls. It states its invariants as assertions; it
returns when they hold. Which function is which stands in its decorator, and `catalog` reads it from
the source, so the decorators only register and leave the function as it is.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor, device

MEASURED = "measured.txt"
"""In the folder of the launch: what `measured` was told."""

Function = Callable[[], None]

_variants: dict[str, Function] = {}
_kinds: dict[str, str] = {}


def broken(
    *,
    ranks: Literal["all", "nonzero", "any"] | tuple[int, ...] = "all",
    launches: int = 1,
    launch: str = "",
) -> Callable[[Function], Function]:
    """Mark the form that fails; `ranks` are those the diagnosis must name as culprits.

    A race that does not fail every time is launched up to `launches` times, until it does. `launch`
    is the command to start it by, where ranks that are forked would not show the failure:
    "torchrun --standalone --nproc-per-node={nproc} {proof} {variant}".
    """
    return _register("broken")


def documented(
    *,
    source: str,
    launches: int = 1,
    launch: str = "",
    promises: Literal["a cure", "an aid"] = "a cure",
    speaks_of: Literal["", "nccl"] = "",
) -> Callable[[Function], Function]:
    """Mark a piece of advice found in the wild, run as it was given; `source` says where.

    Advice against a race holds only if it holds in each of `launches` launches. Where its document
    gives it for something else (to see more, to guard against another failure), it `promises` "an
    aid", and that the failure stays is not held against it. What is about one backend alone
    `speaks_of` that one, and is not checked on another.
    """
    return _register("documented")


def fix(*, source: str = "", launches: int = 1, launch: str = "") -> Callable[[Function], Function]:
    """Mark a form that must hold, in each of `launches` launches."""
    return _register("fix")


def _register(kind: str) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        _variants[function.__name__] = function
        _kinds[function.__name__] = kind
        return function

    return decorate


def backend() -> Literal["gloo", "nccl"]:
    """Return the backend to join the group with: gloo, or what the doctor was told to use.

    Under nccl it binds the rank to its own GPU.
    """
    if os.environ.get("DDPDOCTOR_BACKEND") != "nccl":
        return "gloo"
    import torch

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return "nccl"


def own_device() -> device:
    """Return where this rank's tensors belong: the CPU, or under nccl its own GPU."""
    import torch

    return torch.device("cpu" if backend() == "gloo" else f"cuda:{os.environ['LOCAL_RANK']}")


def shared_folder() -> Path:
    """Return the folder that all ranks of this launch share with nobody else, for checkpoints.

    The doctor's launcher names one. Under plain torchrun it lies among the temporary files, and
    rank 0 removes it at exit.
    """
    if private := os.environ.get("DDPDOCTOR_RUN_DIR"):
        return Path(private)
    # The parent, too: torchrun's run id is "none" by default, and its port is used again.
    job = (os.environ.get("TORCHELASTIC_RUN_ID"), os.environ.get("MASTER_PORT"), os.getppid())
    folder = Path(tempfile.gettempdir()) / "-".join(map(str, ("ddpdoctor", *job)))
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.environ.get("RANK") == "0":
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def same_on_all_ranks(tensors: Iterable[Tensor]) -> bool:
    """Say whether these tensors have the same bits on every rank. A collective."""
    import torch.distributed as dist

    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    digests: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(digests, digest.hexdigest())
    return len(set(digests)) == 1


def measured(text: str) -> None:
    """Tell what this launch counted or timed, for the verdict to show. Only rank 0 is heard."""
    if os.environ.get("RANK", "0") != "0":
        return
    print(text)
    if private := os.environ.get("DDPDOCTOR_RUN_DIR"):
        with (Path(private) / MEASURED).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def main() -> None:
    """Run the variant named on the command line; "broken" is enough for the broken one."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name == "broken":
        name = next(n for n, kind in _kinds.items() if kind == "broken")
    if name not in _variants:
        listing = "\n".join(f"  {n}  ({_kinds[n]})" for n in _variants)
        print(
            f"usage: torchrun --nproc-per-node=4 {sys.argv[0]} VARIANT\n{listing}", file=sys.stderr
        )
        sys.exit(2)
    _variants[name]()
