"""DDP403 collective-shape-mismatch: ranks gather predictions of different lengths.

torchrun --nproc-per-node=4 reproducers/collective_shape_mismatch.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, own_device
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import session


def own_predictions() -> Tensor:
    """Rank r has r + 3 predictions, all of them r."""
    rank = dist.get_rank()
    return torch.full((rank + 3,), float(rank), device=own_device())


def check(gather: Callable[[Tensor], Tensor]) -> None:
    """Assert that every prediction of every rank is there once, in the order of the ranks."""
    world_size = dist.get_world_size()
    expected = [float(r) for r in range(world_size) for _ in range(r + 3)]
    gathered = gather(own_predictions()).tolist()
    assert gathered == expected, f"gathered {gathered}, not {expected}"


def gather_as_if_equal(predictions: Tensor) -> Tensor:
    parts = [torch.empty_like(predictions) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, predictions)  # <-- DDP403
    return torch.cat(parts)


@broken(ranks=())
def all_gather_of_unequal_parts() -> None:
    """all_gather into buffers of the own length."""
    dist.init_process_group(backend())
    check(gather_as_if_equal)
    dist.destroy_process_group()


def gather_into_right_sizes(predictions: Tensor) -> Tensor:
    sizes = range(3, 3 + dist.get_world_size())
    parts = [torch.empty(size, device=own_device()) for size in sizes]
    dist.all_gather(parts, predictions)
    return torch.cat(parts)


@documented(source="PyTorch documentation of all_gather, pytorch/pytorch#156627")
def uneven_sizes_are_supported() -> None:
    """all_gather into a buffer of the right length for each rank."""
    dist.init_process_group(backend())
    check(gather_into_right_sizes)
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#150248")
def gloo_reports_other_dtypes() -> None:
    """Run it on gloo, which raises where dtypes differ: here float64 and int64."""
    dist.init_process_group(backend())
    # What sum() makes of NumPy floats, and of an empty list.
    dtype = torch.int64 if dist.get_rank() == dist.get_world_size() - 1 else torch.float64
    total = torch.tensor(1, dtype=dtype, device=own_device())
    dist.all_reduce(total)
    measured(f"sum of {dist.get_world_size()} ones, one of them int64: {total.item()}")
    dist.destroy_process_group()


@documented(source="Lightning documentation, debug distributed models")
def debug_it_on_cpus() -> None:
    """Run it on CPUs first, that is on gloo; rank 0 takes the maximum, the others the sum."""
    dist.init_process_group(backend())
    operation = dist.ReduceOp.MAX if dist.get_rank() == 0 else dist.ReduceOp.SUM
    total = torch.tensor(dist.get_rank() + 1.0, device=own_device())
    dist.all_reduce(total, op=operation)
    right = dist.get_world_size() * (dist.get_world_size() + 1) / 2
    measured(f"{total.item():.0f} where the sum is {right:.0f}")
    dist.destroy_process_group()


def pad_and_gather(predictions: Tensor) -> Tensor:
    world_size = dist.get_world_size()
    size = torch.tensor([len(predictions)], device=own_device())
    sizes = [torch.empty_like(size) for _ in range(world_size)]
    dist.all_gather(sizes, size)
    longest = int(max(sizes))
    padded = torch.zeros(longest, device=own_device())
    padded[: len(predictions)] = predictions
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:length] for part, length in zip(parts, sizes, strict=True)])


@documented(source="Lightning-AI/pytorch-lightning#7773")
def pad_to_the_longest() -> None:
    """Gather the lengths, pad to the longest, gather, cut."""
    dist.init_process_group(backend())
    check(pad_and_gather)
    dist.destroy_process_group()


def gather_objects(predictions: Tensor) -> Tensor:
    parts: list[list[float]] = [[]] * dist.get_world_size()
    dist.all_gather_object(parts, predictions.tolist())
    return torch.tensor(list(chain.from_iterable(parts)))


@fix()
def objects_of_any_size() -> None:
    """all_gather_object, which agrees on the sizes by itself."""
    with session(backend=backend()):
        check(gather_objects)


@fix()
def places_in_one_tensor() -> None:
    """The stack's predict: a place for every sample, and one all-reduce."""
    with session(backend=backend()) as world:
        samples = [float(n) for n in range(5 * world.world_size + 1)]
        model = cast(nn.Module, nn.Identity())
        predicted = predict(model, samples, torch.tensor, batch_size=2, world=world)
        assert predicted.tolist() == samples, f"predicted {predicted.tolist()}, not {samples}"


if __name__ == "__main__":
    main()
