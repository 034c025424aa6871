"""What the ranks of test_communication.py do. Lines are found by their comment."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist


def perform(programs: list[list[dict[str, Any]]]) -> None:
    """Run this rank's program: calls of the default group, sends and recvs."""
    dist.init_process_group("gloo")
    works = []
    for call in programs[dist.get_rank()]:
        tensor = torch.ones(call["size"])
        match call["op"]:
            case "all_reduce":
                work = dist.all_reduce(tensor, async_op=not call["waited"])  # all_reduce
                works += [work] if work is not None else []
            case "broadcast":
                dist.broadcast(tensor, src=call["root"])  # broadcast
            case "barrier":
                dist.barrier()  # barrier
            case "send":
                dist.send(tensor, dst=call["peer"])  # send
            case "recv":
                dist.recv(tensor, src=call["peer"])  # recv
    for work in works:
        work.wait()
    dist.barrier()  # the last barrier
    dist.destroy_process_group()


def talk_in_pairs() -> None:
    """Sends and recvs that only some ranks make leave the numbers of collectives alone."""
    dist.init_process_group("gloo")
    tensor = torch.ones(2)
    match dist.get_rank():
        case 0:
            dist.send(tensor, dst=1)
            dist.isend(tensor, dst=1, tag=7).wait()  # type: ignore[union-attr]
        case 1:
            dist.recv(tensor, src=0)
            dist.recv(tensor, src=0, tag=7)
            dist.send(tensor, dst=2)
        case 2:
            dist.recv(tensor)
    dist.all_reduce(tensor)
    dist.barrier()
    dist.destroy_process_group()


def exchange_in_single_tensors() -> None:
    """The collectives that work on one tensor for all ranks, under whatever name torch has them."""
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    mine, all_of_it = torch.ones(2), torch.empty(2 * world)
    dist.all_gather_into_tensor(all_of_it, mine)  # gathered
    dist.reduce_scatter_tensor(mine, all_of_it)  # scattered
    dist.all_to_all_single(torch.empty(2 * world), all_of_it)  # exchanged
    dist.destroy_process_group()


def gather_what_was_detached() -> None:
    """What a gather is given had a graph under another name; or had none."""
    dist.init_process_group("gloo")
    features = torch.nn.Linear(2, 2)(torch.ones(4, 2))
    ids = torch.ones(4, 2)
    parts = [torch.empty(4, 2) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features.detach().contiguous())  # cut off
    dist.all_gather(parts, ids.detach().contiguous())
    dist.all_gather(parts, features.detach().clone())
    dist.destroy_process_group()


def both_send_first() -> None:
    """Each of two ranks sends what the other would have to receive."""
    dist.init_process_group("gloo")
    peer = 1 - dist.get_rank()
    dist.send(torch.ones(100_000), dst=peer)  # the send
    dist.recv(torch.ones(100_000), src=peer)


def groups_of_all_and_some() -> None:
    """Each group is made by every rank, and used by its members."""
    dist.init_process_group("gloo")
    groups = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    for group, members in zip(groups, ([0, 1], [1, 2]), strict=True):
        if dist.get_rank() in members:
            dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
    dist.destroy_process_group()


def group_on_one_rank() -> None:
    """Rank 0 makes a group that the others know nothing of."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.new_group([0, 1])  # the group
    dist.barrier()


def talk_often() -> None:
    """So many collectives that they are written in bulk."""
    dist.init_process_group("gloo")
    for _ in range(300):
        dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def stand_still_and_go_on() -> None:
    """Rank 0 sleeps, and computes; rank 1 waits for it."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        time.sleep(1.0)  # the sleep
        dist.all_reduce(torch.ones(1))
        until = time.thread_time() + 2.0
        while time.thread_time() < until:  # the loop
            torch.linalg.qr(torch.rand(30, 30))  # the work
    else:
        dist.all_reduce(torch.ones(1))
    dist.barrier()
    dist.destroy_process_group()


def wait_for_a_key(name: str) -> None:
    """Rank 0 says in a store that it is ready; the others wait until it says so, under a name."""
    dist.init_process_group("gloo")
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        store.set("ready", "1")  # the key
        store.wait(["ready"])
    else:
        store.get(name)  # the wait
    dist.barrier()
    dist.destroy_process_group()
