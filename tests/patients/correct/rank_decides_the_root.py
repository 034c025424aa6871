# style: round-robin broadcast, reduce to changing roots
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def exchange(step, rank, world_size):
    root = step % world_size
    message = torch.full((3,), float(rank))
    dist.broadcast(message, src=root)
    dist.reduce(message, dst=root)
    if rank == root:
        parts = [torch.empty(2) for _ in range(world_size)]
        dist.gather(message[:2].contiguous(), parts, dst=root)
        dist.scatter(message, [part.repeat(2)[:3] for part in parts], src=root)
    else:
        dist.gather(message[:2].contiguous(), dst=root)
        dist.scatter(message, src=root)
    return message.sum()


def uneven_lists(rank, world_size):
    sent = [torch.full((rank + target + 1,), float(rank)) for target in range(world_size)]
    got = [torch.empty(rank + source + 1) for source in range(world_size)]
    works = []
    for peer in range(world_size):
        if peer != rank:
            works.append(dist.isend(sent[peer], dst=peer))
            works.append(dist.irecv(got[peer], src=peer))
    for work in works:
        work.wait()
    return sum(tensor.numel() for tensor in got)


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        weight = exchange(step, rank, world_size)
        optimizer.zero_grad()
        (model(torch.ones(2, 3)) * weight.clamp(max=1.0)).mean().backward()
        optimizer.step()
    count = uneven_lists(rank, world_size)
    answers = [None] * world_size
    dist.all_gather_object(answers, {"rank": rank, "values": list(range(count))})
    if rank == 0:
        print([len(each["values"]) for each in answers])
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
