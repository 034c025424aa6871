"""What the ranks of these tests run; each function on all of them, with either backend."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ddpdoctor.stack.crystal import dcdft, train_from_list
from ddpdoctor.stack.detection import train_on_digits
from ddpdoctor.stack.generation import train_generation
from ddpdoctor.stack.process_group import session
from ddpdoctor.stack.protein import synthetic_backbones, train_from_backbones
from tests.stack.bodies import tiny, train_toy

CRYSTAL = tiny({})
PROTEIN = {"hidden_dim": 8, "heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
DETECTION = {"n_images": 60, "n_epochs": 2, "stop_epoch": 1}
GENERATION = {"width": 16, "heads": 2, "layers": 1, "align_layer": 1, "sampling_steps": 2}
TRAIN: dict[str, Callable[..., Any]] = {
    "crystal": lambda **more: train_from_list(*dcdft(), **{**CRYSTAL, **more}),
    "protein": lambda **more: train_from_backbones(
        synthetic_backbones(23, 0), **{"n_epochs": 2, **PROTEIN, **more}
    ),
    "detection": lambda **more: train_on_digits(**{**DETECTION, **more}),
    "generation": lambda **more: train_generation(**{"n_epochs": 2, **GENERATION, **more}),
}


def train(folder: Path, system: str, output: str, **options: Any) -> list[list[float]]:
    """Train a system, and return its history."""
    result = TRAIN[system](output_dir=folder / output, **options)
    return [[epoch.train_loss, epoch.metric] for epoch in result.history]


def toy(folder: Path, output: str, **options: Any) -> dict[str, Any]:
    """Train the toy, which rounds the same way each time, on a GPU too."""
    return train_toy(str(folder / output), **options)


def binding(folder: Path, backend: str) -> dict[str, Any]:
    """Say which device this rank computes on, and what it has on the others."""
    with session(backend=backend) as world:  # type: ignore[arg-type]
        tensor = torch.ones(1 << 20, device=world.device)
        dist.all_reduce(tensor)
        on_gpu = world.device.type == "cuda"
        cards = range(torch.cuda.device_count()) if on_gpu else range(0)
        return {
            "device": str(tensor.device),
            "expected": f"cuda:{world.local_rank}" if on_gpu else "cpu",
            "current": torch.cuda.current_device() if on_gpu else None,
            "elsewhere": [
                torch.cuda.memory_allocated(card) for card in cards if card != world.device.index
            ],
            "sum": tensor[0].item(),
        }


def hang(folder: Path, backend: str) -> None:
    """Leave out one all_reduce on rank 1, and wait until torch gives up and dumps its recorder.

    gloo dumps nothing by itself: there each rank writes what NCCL's watchdog would. NCCL may let an
    all_reduce and a broadcast of four numbers end as if they were one call (2.28 did, on an H100):
    rank 0 then has one call more than rank 1, which stays until it is ended.
    """
    os.environ["TORCH_FR_BUFFER_SIZE"] = os.environ["TORCH_NCCL_TRACE_BUFFER_SIZE"] = "2000"
    os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1"
    dumps = folder / "dumps"
    dumps.mkdir(exist_ok=True)
    prefix = str(dumps / "nccl_trace_rank_")
    os.environ["TORCH_FR_DUMP_TEMP_FILE"] = os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] = prefix
    with session(backend=backend, timeout=timedelta(seconds=20)) as world:  # type: ignore[arg-type]
        value = torch.ones(4, device=world.device)
        dist.all_reduce(value)
        works = []
        if world.rank == 0:
            works.append(dist.all_reduce(value, async_op=True))  # the one that rank 1 leaves out
        works.append(dist.broadcast(value, src=1, async_op=True))
        if backend == "gloo":
            time.sleep(1)
            content = torch._C._distributed_c10d._dump_fr_trace()  # type: ignore[attr-defined]
            Path(f"{prefix}{world.rank}").write_bytes(content)
            assert pickle.loads(content)["entries"]
        for work in works:
            work.wait()
        torch.cuda.synchronize()
        time.sleep(60)


def deadlock(folder: Path, backend: str) -> None:
    """Wait for ever: a barrier that rank 1 never comes to."""
    with session(backend=backend) as world:  # type: ignore[arg-type]
        value = torch.ones(4, device=world.device)
        dist.all_reduce(value)
        if world.rank == 0:
            dist.barrier()  # <-- DDP401
        dist.all_reduce(value)
        print(value.tolist())
