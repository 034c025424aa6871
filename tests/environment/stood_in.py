"""What stands in for a driver of GPUs and for a torch that was built for them.

`ddpdoctor env` asks the one by its tool and the other in a child process: both are programs here
too, that say what those of such a machine would say.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_TOOL = """#!/bin/sh
case "$*" in
  *fabric.state*) cat <<'END'
{health}
END
  ;;
  *query-gpu*) cat <<'END'
{gpus}
END
  ;;
  *query-compute-apps*) cat <<'END'
{processes}
END
  ;;
  topo*) printf '\\tGPU0\\nGPU0\\t X \\n' ;;
  *) echo "| NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: {cuda} |" ;;
esac
"""
_TORCH = """
__version__ = "2.13.0+{build}"

class version:
    cuda, hip = {cuda!r}, None

class cuda:
    class nccl:
        @staticmethod
        def version():
            return {nccl}

    @staticmethod
    def device_count():
        return {count}

    @staticmethod
    def can_device_access_peer(one, other):
        return {peers}

    @staticmethod
    def init():
        if {failure!r}:
            raise RuntimeError({failure!r})

{loads}
"""
_DISTRIBUTED = """
def is_available():
    return {available}

def is_gloo_available():
    return True

def is_nccl_available():
    return {with_nccl}
"""


def driver(
    folder: Path,
    *,
    names: Sequence[str] = ("NVIDIA H100", "NVIDIA H100"),
    version: str = "580.1",
    cuda: str = "13.0",
    mode: str = "Default",
    mig: str = "Disabled",
    processes: Sequence[int] = (),
    fabric: str = "Completed",
    uncorrected: int = 0,
) -> Path:
    """A folder for PATH, with an nvidia-smi that tells of such GPUs."""
    numbers = range(len(names))
    folder.mkdir(parents=True)
    tool = folder / "nvidia-smi"
    tool.write_text(
        _TOOL.format(
            gpus="\n".join(
                f"{n}, {names[n]}, GPU-{n}, 81559, {mode}, {mig}, {version}" for n in numbers
            ),
            health="\n".join(f"GPU-{n}, {fabric}, {uncorrected}" for n in numbers),
            processes="\n".join(f"GPU-0, {pid}" for pid in processes),
            driver=version,
            cuda=cuda,
        )
    )
    tool.chmod(0o755)
    return folder


def torch(
    folder: Path,
    *,
    cuda: str | None = "13.0",
    count: int = 2,
    peers: bool = True,
    failure: str = "",
    available: bool = True,
    with_nccl: bool = True,
    library: Path | None = None,
) -> Path:
    """A folder for PYTHONPATH, with a torch of that kind; `library` is what it is linked with."""
    package = folder / "torch"
    package.mkdir(parents=True)
    loads = f"import ctypes\nctypes.CDLL({str(library)!r})" if library else ""
    (package / "__init__.py").write_text(
        _TORCH.format(
            build="cpu" if cuda is None else "cu" + cuda.replace(".", ""),
            cuda=cuda,
            nccl=(2, 29, 7),
            count=count,
            peers=peers,
            failure=failure,
            loads=loads,
        )
    )
    (package / "distributed.py").write_text(
        _DISTRIBUTED.format(available=available, with_nccl=with_nccl)
    )
    return folder
