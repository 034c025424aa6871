import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

JUDGES = (0, 2)


def judges_of(rank):
    group = dist.new_group(list(JUDGES))
    return group if rank in JUDGES else None


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    judges = judges_of(rank)
    torch.manual_seed(0)
    net = DDP(torch.nn.Linear(4, 1))
    steps = torch.optim.SGD(net.parameters(), 0.1)
    noise = torch.Generator().manual_seed(rank)
    for _ in range(9):
        net(torch.randn(8, 4, generator=noise)).mean().backward()
        steps.step()
        steps.zero_grad()
    mark = net.module(torch.randn(8, 4, generator=noise)).mean().detach()
    if judges is not None:
        dist.all_reduce(mark, group=judges)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
