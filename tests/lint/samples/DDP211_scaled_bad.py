import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def longer(net, batches, optimizer, world):
    for x, y in batches:
        optimizer.zero_grad()
        off = F.smooth_l1_loss(net(x), y)
        whole = off + 0.1 * net(x).square().mean()
        whole = whole * world  # <-- DDP211
        whole.backward()
        optimizer.step()


def shorter(net, batches, optimizer):
    judge = nn.MSELoss()
    for x, y in batches:
        optimizer.zero_grad()
        loss = judge(net(x), y)
        loss = loss / dist.get_world_size()  # <-- DDP211
        loss.backward()
        optimizer.step()


def main(batches):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    longer(net, batches[rank::world], optimizer, world)
    shorter(net, batches[rank::world], optimizer)


if __name__ == "__main__":
    main([(torch.randn(4, 4), torch.randn(4, 1)) for _ in range(96)])
