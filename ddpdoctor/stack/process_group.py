"""One owner for the process group: who joins it, on which device, and who takes it down.

    with session() as world:
        train(world)

The same line works under torchrun, under any launcher that sets RANK, WORLD_SIZE and LOCAL_RANK,
and in a plain process, where there is no group and `world.world_size` is 1.
"""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.stack.errors import LauncherError

_ONES_OWN = ("invalid usage", "invalid argument", "internal error", "system error", "cuda error")
"""What NCCL calls a fault of this rank, its machine or its GPU."""

Backend = Literal["auto", "gloo", "nccl"]


@dataclass(frozen=True)
class World:
    """This process's place among the ranks."""

    rank: int
    local_rank: int
    world_size: int
    device: torch.device
    backend: str | None
    """None where there is no process group."""

    @property
    def is_main(self) -> bool:
        """Whether this is the rank that writes files and talks to the user."""
        return self.rank == 0


@contextmanager
def session(
    *,
    backend: Backend = "auto",
    timeout: timedelta = timedelta(minutes=10),
    distributed: bool | None = None,
) -> Iterator[World]:
    """Join the process group for the length of the block.

    `backend` is "auto" (nccl on GPUs, otherwise gloo), "nccl" (on GPUs) or "gloo" (on the CPU).
    `distributed` None follows the launcher, True insists on one, False insists on a lone process.
    A session inside a session joins the group that is there and leaves it standing.

    Raises LauncherError where the launcher and `distributed` contradict each other, where a
    launcher variable is missing or no number, and where there is no GPU for this local rank.
    """
    if backend not in get_args(Backend):
        raise LauncherError(f"there is no backend {backend!r}: choose auto, gloo or nccl")
    if dist.is_initialized():
        yield _existing_world()
        return
    if not _is_distributed(distributed):
        on_gpu = backend != "gloo" and torch.cuda.is_available()
        if backend == "nccl" and not on_gpu:
            raise LauncherError("backend='nccl' needs a GPU, and this host shows none")
        yield World(0, 0, 1, torch.device("cuda", 0) if on_gpu else torch.device("cpu"), None)
        return
    world = _launched_world(backend)
    if world.device.type == "cuda":
        # Before anything touches CUDA: whatever allocates first without a device lands on GPU 0,
        # and NCCL would guess the device from the *global* rank, which is wrong on node two.
        torch.cuda.set_device(world.device)
    dist.init_process_group(
        world.backend,
        store=_store_of_this_attempt(timeout),
        rank=world.rank,
        world_size=world.world_size,
        timeout=timeout,
        device_id=world.device if world.device.type == "cuda" else None,
    )
    # No try/finally: after an exception the peers may be anywhere, so a rank on its way out must
    # not start or await anything collective. Its exit closes the connections, which is what tells
    # them. For the same reason nothing is registered with atexit.
    yield world
    _take_down()


def wrap(model: nn.Module, world: World, *, find_unused_parameters: bool = False) -> nn.Module:
    """Move `model` to the rank's device and, where there is a group, wrap it in DDP."""
    model = model.to(world.device)
    if world.backend is None:
        return model
    device_ids = [world.device.index] if world.device.type == "cuda" else None
    return DistributedDataParallel(
        model,
        device_ids=device_ids,
        find_unused_parameters=find_unused_parameters,
        gradient_as_bucket_view=True,  # or each gradient is held, and copied, twice
    )


def unwrap(model: nn.Module) -> nn.Module:
    """Return the module itself, whose keys have no `module.` prefix."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def lost_a_peer(error: RuntimeError) -> bool:
    """Whether a collective failed because another rank has ended, or did not come in time.

    The store has types for that, but for a port that it cannot open itself. NCCL's is that of its
    misuse, too, which words tell apart; and gloo raises what everything else raises, with its file
    that has lost the peer, or enforces what is wrong here.
    """
    text = str(error)
    if isinstance(error, dist.DistBackendError):
        return not any(word in text.lower() for word in _ONES_OWN)
    if isinstance(error, dist.DistError):
        return "failed to listen" not in text
    return "gloo/transport/" in text and "enforce fail" not in text


def ranks_of_this_node(world: World) -> list[int]:
    """Return the ranks that share this one's memory and disk, in order. A collective."""
    if world.world_size == 1:
        return [world.rank]
    # torchrun numbers the nodes; other launchers leave the name of the host to tell them apart.
    nodes: list[str] = [""] * world.world_size
    dist.all_gather_object(nodes, os.environ.get("GROUP_RANK") or socket.gethostname())
    return [rank for rank, node in enumerate(nodes) if node == nodes[world.rank]]


def _is_distributed(wanted: bool | None) -> bool:
    launched = "RANK" in os.environ
    if wanted and not launched:
        raise LauncherError(
            "distributed=True, but no launcher started this process (RANK is not set): "
            "start it with `torchrun --nproc-per-node=4 SCRIPT`, or leave distributed out"
        )
    if wanted is False and launched and _variable("WORLD_SIZE") > 1:
        # Each would train alone on all the data and overwrite the others' files.
        raise LauncherError(
            f"distributed=False, but a launcher started {os.environ['WORLD_SIZE']} ranks, which "
            "would be as many lone copies: leave distributed out, or start with plain `python`"
        )
    return launched if wanted is None else wanted


def _launched_world(backend: Backend) -> World:
    rank, world_size = _variable("RANK"), _variable("WORLD_SIZE")
    if backend == "auto":
        backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend != "nccl":
        local_rank = int(os.environ.get("LOCAL_RANK", rank))
        return World(rank, local_rank, world_size, torch.device("cpu"), backend)
    local_rank = _variable("LOCAL_RANK")
    gpus = torch.cuda.device_count()
    if local_rank >= gpus:
        raise LauncherError(
            f"rank {rank} has LOCAL_RANK {local_rank}, but this host shows {gpus} GPU(s): "
            "start at most one rank per GPU, or pass backend='gloo' to train on the CPU"
        )
    return World(rank, local_rank, world_size, torch.device("cuda", local_rank), backend)


def _store_of_this_attempt(timeout: timedelta) -> Store | None:
    """Return where ranks meet that torchrun has started again; None where torch's own way will do.

    torchrun keeps one store for all attempts (2.13), and in it lie the addresses of ranks that are
    gone, which gloo would try: so each attempt gets names of its own. On several hosts each counts
    the attempts for itself, and they may differ: torchrun must be told there, by
    TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, to make a store for each.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt == "0" or os.environ.get("GROUP_WORLD_SIZE") != "1":
        return None
    store, _, _ = next(rendezvous("env://", timeout=timeout))
    return PrefixStore(f"attempt_{attempt}", store)


def _existing_world() -> World:
    rank, backend = dist.get_rank(), dist.get_backend()
    local_rank = int(os.environ.get("LOCAL_RANK", rank))
    on_gpu = "nccl" in backend
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    return World(rank, local_rank, dist.get_world_size(), device, backend)


def _variable(name: str) -> int:
    value = os.environ.get(name, "")
    if not value.isdecimal():
        raise LauncherError(
            f"{name} is {value!r}, not a number: start the ranks with torchrun, which sets it"
        )
    return int(value)


def _take_down() -> None:
    """Destroy the group, unless a DDP wrapper is still alive.

    DDP's reducer holds the group too. If the wrapper outlives `destroy_process_group`, it is the
    last owner, and its destructor joins gloo's thread while holding the GIL which that thread
    needs: the process hangs for ever, in about half of the quick launches (torch 2.13). So a
    wrapper that only a reference cycle keeps is collected first; where the caller still holds one,
    the group is left to the end of the process, where the reducer is not its last owner.
    """
    if _wrapper_is_alive():
        gc.collect()
    if not _wrapper_is_alive():
        dist.destroy_process_group()


def _wrapper_is_alive() -> bool:
    # type(), not isinstance(): some lazy objects import things when asked for their __class__.
    kinds = set(map(type, gc.get_objects()))
    return any(issubclass(kind, DistributedDataParallel) for kind in kinds)
