"""DDP106 devices-not-bound: the rank in the whole job is taken for the index of a GPU.

torchrun --nproc-per-node=4 reproducers/devices_not_bound.py broken
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main

OURS = ("8", "9", "10", "11", "12", "13", "14", "15")
"""What the scheduler has given this job on each of its nodes: the upper half of their GPUs."""


ALL = ",".join(map(str, range(16)))


@contextmanager
def job(nodes: int = 2) -> Iterator[int]:
    """Be a rank of a job that has a GPU for each rank on every node; yields how many that is.

    The nodes are imagined: what a launcher would tell the ranks of the second one is told here.
    """
    rank, per_node = int(os.environ["RANK"]), max(1, int(os.environ["WORLD_SIZE"]) // nodes)
    gpus = ",".join(OURS[:per_node])
    os.environ.update(CUDA_VISIBLE_DEVICES=gpus, LOCAL_RANK=str(rank % per_node))
    dist.init_process_group(backend())
    yield per_node
    dist.destroy_process_group()


def check(device: torch.device, per_node: int) -> None:
    """Assert that each rank has a device that exists, and that no two of a node have the same."""
    rank = dist.get_rank()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ALL).split(",")
    assert device.index < len(visible), f"rank {rank} wants {device}, and sees {len(visible)} GPUs"
    mine = (rank // per_node, visible[device.index])
    everywhere: list[tuple[int, str]] = [mine] * dist.get_world_size()
    dist.all_gather_object(everywhere, mine)
    assert len({*everywhere}) == len(everywhere), f"ranks share a GPU; (node, GPU): {everywhere}"
    assert visible[device.index] in OURS, f"GPU {visible[device.index]} belongs to another job"


@broken(ranks="any")
def global_rank_as_device() -> None:
    """Take the global rank for the device index: on the second node there is no such device."""
    with job() as per_node:
        device = torch.device(f"cuda:{dist.get_rank()}")  # <-- DDP106
        check(device, per_node)


@documented(source="002 fix 1")
def leave_the_variable_alone() -> None:
    """Keep CUDA_VISIBLE_DEVICES as the scheduler has set it, and bind by LOCAL_RANK."""
    with job() as per_node:
        print(f"CUDA_VISIBLE_DEVICES: {os.environ['CUDA_VISIBLE_DEVICES']}")
        check(torch.device("cuda", int(os.environ["LOCAL_RANK"])), per_node)


@documented(source="002 before fix 1")
def delete_the_variable() -> None:
    """Delete CUDA_VISIBLE_DEVICES, and bind by LOCAL_RANK: the GPUs of somebody else."""
    with job() as per_node:
        if "CUDA_VISIBLE_DEVICES" in os.environ:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        check(torch.device("cuda", int(os.environ["LOCAL_RANK"])), per_node)


@documented(source="MzeroMiko/VMamba#115")
def rank_modulo_devices() -> None:
    """Take the global rank modulo the number of GPUs of this node."""
    with job() as per_node:
        gpus = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))  # torch.cuda.device_count()
        check(torch.device("cuda", dist.get_rank() % gpus), per_node)


@documented(source="asked in huggingface/transformers#1200")
def whatever_is_current() -> None:
    """Say .cuda(), no index: on every rank that has bound no device, that is device 0."""
    with job(nodes=1) as per_node:
        check(torch.device("cuda", 0), per_node)


@fix(source="meta-llama/llama-cookbook#90")
def local_rank_as_device() -> None:
    """Take LOCAL_RANK, which counts from 0 on each node."""
    with job() as per_node:
        check(torch.device("cuda", int(os.environ["LOCAL_RANK"])), per_node)


if __name__ == "__main__":
    main()
