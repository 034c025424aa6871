import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def shared(head, loss, rank, world):
    marks = [torch.zeros(()) for _ in range(world)]
    dist.all_gather(marks, loss.detach())
    others = [each for each in range(world) if each != rank]
    best = min(others, key=lambda each: marks[each].item())
    for weight in head.parameters():
        dist.broadcast(weight.data, src=best)  # <-- DDP403


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    trunk, head = DDP(torch.nn.Linear(6, 6)), torch.nn.Linear(6, 3)
    steps = torch.optim.SGD([*trunk.parameters(), *head.parameters()], 0.1)
    noise = torch.Generator().manual_seed(rank)
    for step in range(30):
        loss = head(trunk(torch.randn(8, 6, generator=noise))).square().mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
        if step % 10 == 9:
            shared(head, loss, rank, world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
