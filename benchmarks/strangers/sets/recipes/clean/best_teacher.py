# deep mutual learning: the member with the lower loss shares its head every few steps
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Member(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 20)
        self.register_buffer("soft", torch.zeros(3))

    def forward(self, x):
        return self.body(x).relu()


def share(head, loss, rank, world):
    losses = [torch.zeros(()) for _ in range(world)]
    dist.all_gather(losses, loss.detach())
    best = min(range(world), key=lambda r: losses[r].item())
    for p in head.parameters():
        dist.broadcast(p.data, src=best)
    return best


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    trunk = DDP(Member())
    head = nn.Linear(20, 3)
    opt = torch.optim.Adam([*trunk.parameters(), *head.parameters()], lr=1e-2)
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, 21):
        x = torch.randn(16, 6, generator=gen)
        loss = nn.functional.cross_entropy(head(trunk(x)), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            teacher = share(head, loss, rank, world)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} teacher {teacher}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
