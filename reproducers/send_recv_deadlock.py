"""DDP417 send-recv-deadlock: every rank sends first, and nobody receives.

torchrun --nproc-per-node=4 reproducers/send_recv_deadlock.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

SIZE = 1000

Exchange = Callable[[Tensor, int, int], Tensor]


def pass_on(exchange: Exchange) -> None:
    """Pass each rank's tensor once round the ring, as ring attention does with its keys."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    following, preceding = (rank + 1) % world_size, (rank - 1) % world_size
    held = torch.full((SIZE,), float(rank), device=own_device())
    for step in range(1, world_size + 1):
        held = exchange(held, following, preceding)
        origin = (rank - step) % world_size
        assert bool((held == origin).all()), f"got what is not from rank {origin}"


@broken(ranks=())
def send_then_receive() -> None:
    """Every rank sends to the next one, then receives from the one before."""
    dist.init_process_group(backend())
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = torch.full((SIZE,), float(rank), device=own_device())
    theirs = torch.empty_like(mine)
    dist.send(mine, dst=(rank + 1) % world_size)  # <-- DDP417
    dist.recv(theirs, src=(rank - 1) % world_size)
    dist.destroy_process_group()


def run(exchange: Exchange) -> None:
    """Join, pass round, leave."""
    dist.init_process_group(backend())
    pass_on(exchange)
    dist.barrier()
    dist.destroy_process_group()


def even_first(held: Tensor, following: int, preceding: int) -> Tensor:
    received = torch.empty_like(held)
    if dist.get_rank() % 2 == 0:
        dist.send(held, dst=following)
        dist.recv(received, src=preceding)
    else:
        dist.recv(received, src=preceding)
        dist.send(held, dst=following)
    return received


@documented(source="mpickpt/mana#247: send and receive in opposite order")
def even_ranks_send_first() -> None:
    """Even ranks send first, odd ranks receive first."""
    run(even_first)


def send_in_the_background(held: Tensor, following: int, preceding: int) -> Tensor:
    received = torch.empty_like(held)
    sending, receiving = dist.isend(held, dst=following), dist.irecv(received, src=preceding)
    assert sending is not None, "this rank is not in the group"
    assert receiving is not None, "this rank is not in the group"
    sending.wait()
    receiving.wait()
    return received


@documented(source="intel/torch-ccl#72: isend, irecv, then wait for both")
def isend_and_irecv() -> None:
    """Start both, then wait for both."""
    run(send_in_the_background)


def batched(held: Tensor, following: int, preceding: int) -> Tensor:
    received = torch.empty_like(held)
    both = [
        dist.P2POp(dist.isend, held, following),
        dist.P2POp(dist.irecv, received, preceding),
    ]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return received


@documented(source="NVIDIA/nccl#479: group send and receive into one operation")
def one_batch() -> None:
    """Hand both to batch_isend_irecv, which groups them."""
    run(batched)


@fix()
def one_batch_in_a_session() -> None:
    """Hand both to batch_isend_irecv, in a session."""
    with session(backend=backend()):
        pass_on(batched)


if __name__ == "__main__":
    main()
