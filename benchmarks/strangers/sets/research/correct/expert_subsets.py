"""Two experiments side by side: world split in halves, each half trains its own model in its own group."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def halves():
    world = dist.get_world_size()
    return [list(range(world // 2)), list(range(world // 2, world))]


def main():
    rank = dist.get_rank()
    groups = [dist.new_group(members) for members in halves()]
    mine = 0 if rank in halves()[0] else 1
    group, members = groups[mine], halves()[mine]
    torch.manual_seed(mine)
    width = 8 if mine == 0 else 20
    model = DDP(nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 1)), process_group=group)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    stream = torch.Generator().manual_seed(10 + rank)
    rounds = 30 if mine == 0 else 45
    for _ in range(rounds):
        x = torch.randn(16, 6, generator=stream)
        loss = nn.functional.mse_loss(model(x), x.sin().sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
    local = loss.detach().clone()
    if mine == 1:
        dist.broadcast(local, src=members[0], group=group)
    else:
        dist.all_reduce(local, op=dist.ReduceOp.MAX, group=group)
    if rank == members[0]:
        print(f"experiment {mine}: {rounds} rounds, width {width}, loss {local.item():.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
