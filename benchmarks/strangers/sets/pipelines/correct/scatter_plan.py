"""Rank 0 owns the curriculum and deals one plan to each worker."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Dealer:
    def __init__(self, steps):
        self.steps = steps

    def deal(self, world):
        perm = torch.randperm(self.steps * world, generator=torch.Generator().manual_seed(4))
        mine, *others = perm.chunk(world)
        for dst, plan in enumerate(others, start=1):
            dist.send(plan.contiguous(), dst=dst)
        return mine


def receive(steps):
    plan = torch.empty(steps, dtype=torch.long)
    dist.recv(plan, src=0)
    return plan


def main(steps=10):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    plan = Dealer(steps).deal(world) if rank == 0 else receive(steps)
    model = DDP(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for item in plan.tolist():
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(item))
        loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    everything = [torch.empty_like(plan) for _ in range(world)] if rank == 0 else None
    dist.gather(plan, everything, dst=0)
    if rank == 0:
        print("distinct items", len(set(torch.cat(everything).tolist())), "loss", round(loss.item(), 4), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
