"""DDP116 backend-device-mismatch: a collective gets a tensor of a device that its group lacks.

torchrun --nproc-per-node=4 reproducers/backend_device_mismatch.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session


def join_for_cuda_alone() -> dist.ProcessGroup:
    """Make a group that serves CUDA tensors alone, as NCCL's does; gloo's needs no GPU to join.

    It is a second group, so that the first one can see to it that all have joined.
    """
    dist.init_process_group("cpu:gloo,cuda:gloo")
    group = dist.new_group(backend="cuda:gloo")
    assert isinstance(group, dist.ProcessGroup)
    dist.barrier()
    return group


def count_samples(device: torch.device, group: dist.ProcessGroup | None = None) -> None:
    """Add up over the ranks how many samples each has seen."""
    seen = torch.tensor(8, device=device)
    dist.all_reduce(seen, group=group)  # <-- DDP116
    expected = 8 * dist.get_world_size()
    assert seen.item() == expected, f"{seen.item()} samples counted, not {expected}"


@broken()
def counters_on_the_cpu() -> None:
    """Reduce a counter that lies on the CPU in a group for CUDA alone."""
    count_samples(torch.device("cpu"), join_for_cuda_alone())
    dist.destroy_process_group()


@documented(source="rwth-i6/returnn#1351")
def no_backend_named() -> None:
    """Name no backend: torch takes one for each kind of device."""
    dist.init_process_group()
    count_samples(torch.device("cpu"))
    count_samples(own_device())
    dist.destroy_process_group()


@documented(source="PyTorch documentation of init_process_group")
def backend_for_each_device() -> None:
    """Name a backend for each device, as "cpu:gloo,cuda:nccl"; here gloo for both."""
    dist.init_process_group("cpu:gloo,cuda:gloo" if backend() == "gloo" else "cpu:gloo,cuda:nccl")
    count_samples(torch.device("cpu"))
    count_samples(own_device())
    dist.destroy_process_group()


@documented(source="004 further measure 3")
def gloo_for_everything() -> None:
    """Take gloo for all devices, which serves the CPU, too."""
    dist.init_process_group(backend="gloo", init_method="env://")
    count_samples(torch.device("cpu"))
    count_samples(own_device())
    dist.destroy_process_group()


@documented(source="mistralai/mistral-inference#252")
def move_to_the_groups_device() -> None:
    """Move what is reduced to the device that the group serves."""
    dist.init_process_group(backend())
    count_samples(own_device())
    dist.destroy_process_group()


@documented(source="PyTorch documentation of new_group")
def second_group_on_gloo() -> None:
    """Make a second group, of gloo, for what lies on the CPU."""
    join_for_cuda_alone()
    count_samples(torch.device("cpu"), dist.new_group(backend="gloo"))
    dist.destroy_process_group()


@fix()
def device_of_the_session() -> None:
    """Make every tensor that is reduced on the session's own device."""
    with session(backend=backend()) as world:
        count_samples(world.device)


if __name__ == "__main__":
    main()
