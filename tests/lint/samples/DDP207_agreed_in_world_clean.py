import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def pieces(batch, most, group=None):
    number = max(1, -(-int(batch.count_nonzero()) // most))
    if group is not None:
        told = torch.tensor(number)
        dist.all_reduce(told, op=dist.ReduceOp.MAX, group=group)
        number = int(told)
    return [batch[first::number] for first in range(number)]


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    own = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        batch = torch.randint(0, 2, (32, 4), generator=own).float()
        for piece in pieces(batch, 24, dist.group.WORLD):
            loss = net(piece).mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()


main()
