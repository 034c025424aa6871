"""Runs in a throw-away child process: imports torch and prints what it is, as one line of JSON.

The last line of the output counts; libraries may print what they like before it.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    """Print the facts. Whatever goes wrong while torch is imported ends the process."""
    torch: Any = import_module("torch")
    import_module("torch.distributed")
    sys.stdin.read()  # who computes on the GPUs is found out before this process does

    facts: dict[str, Any] = {
        "version": torch.__version__,
        "folder": str(Path(torch.__file__).parent),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": _cudnn(torch),
        "debug": bool(getattr(torch.version, "debug", False)),
        "backends": _backends(torch.distributed),
        "nccl_built": None,
        "nccl_loaded": {"absent": "this torch is built without NCCL"},
        "nccl_library": None,
        "accelerator": _accelerator(torch),
        "instructions": _instructions(torch),
        "threads": getattr(torch, "get_num_threads", lambda: None)(),
        "visible_gpus": _visible_gpus(torch.cuda),
        "without_peer_access": _without_peer_access(torch.cuda),
        "cuda_failure": _cuda_failure(torch),
        "refused": _refused(torch),
        "numpy_failure": _numpy_failure(torch),
    }
    if "nccl" in facts["backends"]:
        facts["nccl_built"] = ".".join(map(str, torch.cuda.nccl.version()[:3]))
        facts["nccl_library"], facts["nccl_loaded"] = _loaded_nccl()
    print("\n" + json.dumps(facts))


def _backends(distributed: Any) -> list[str]:
    if not distributed.is_available():
        return []
    return [
        name
        for name in ("gloo", "nccl", "mpi", "ucc")
        if getattr(distributed, f"is_{name}_available", bool)()
    ]


def _accelerator(torch: Any) -> str | None:
    try:
        found = torch.accelerator.current_accelerator()
    except Exception:  # an older torch, or a driver that cannot be asked
        return None
    return None if found is None else str(found.type)


def _instructions(torch: Any) -> str | None:
    try:
        return str(torch.backends.cpu.get_cpu_capability())
    except Exception:  # an older torch
        return None


def _cudnn(torch: Any) -> str | None:
    try:
        version = torch.backends.cudnn.version()
    except Exception:  # built against another one than is installed: importing torch still works
        return None
    return None if version is None else str(version)


def _visible_gpus(cuda: Any) -> Any:
    try:
        return cuda.device_count()
    except Exception as error:
        return {"unknown": f"{type(error).__name__}: {error}"}


def _without_peer_access(cuda: Any) -> list[tuple[int, int]]:
    try:
        count = cuda.device_count()
        pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
        return [pair for pair in pairs if not cuda.can_device_access_peer(*pair)]
    except Exception:  # a driver that cannot be asked: the count has said so already
        return []


def _cuda_failure(torch: Any) -> str | None:
    """What CUDA says where it does not start: the GPUs are counted by another library."""
    if torch.version.cuda is None:
        return None
    try:
        torch.cuda.init()
    except Exception as error:
        return _first_line(error)
    return None


def _numpy_failure(torch: Any) -> str | None:
    """What torch says where it cannot use NumPy, which it needs to send objects between ranks."""
    try:
        torch.empty(0).numpy()
    except RuntimeError as error:
        return _first_line(error)
    except Exception:
        pass  # another fault of torch's, if any
    return None


def _refused(torch: Any) -> list[tuple[str, str]]:
    """Variables whose value torch's own code refuses, tried here where it can do no harm."""
    found = []
    for name, use in (
        ("GLOO_DEVICE_TRANSPORT", _make_gloo_device),
        ("PYTORCH_ALLOC_CONF", _configure_allocator),
        ("PYTORCH_CUDA_ALLOC_CONF", _configure_allocator),
    ):
        if value := os.environ.get(name):
            try:
                use(torch, value)
            except AttributeError:
                continue  # an older torch, or one without gloo
            except Exception as error:
                found.append((name, _first_line(error)))
    return found


def _make_gloo_device(torch: Any, _: str) -> None:
    torch.distributed.ProcessGroupGloo.create_device(hostname="127.0.0.1")


def _configure_allocator(torch: Any, value: str) -> None:
    torch._C._accelerator_setAllocatorSettings(value)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _loaded_nccl() -> tuple[str | None, Any]:
    """Path and version of the library that this process has mapped."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
        paths = [line.split(maxsplit=5)[5] for line in lines if "libnccl.so" in line]
        if not paths:
            return None, {"unknown": "no libnccl is mapped: NCCL is linked into torch"}
        number = ctypes.c_int()
        ctypes.CDLL(paths[0]).ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError) as error:
        return None, {"unknown": str(error)}
    major, rest = divmod(number.value, 10000)
    return paths[0], f"{major}.{rest // 100}.{rest % 100}"


if __name__ == "__main__":
    main()
