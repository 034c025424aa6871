import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from losses import objective


def train(net, loader, opt):
    for x, y in loader:
        loss = objective(net(x), y)
        parts = None
        if y.sum() > 0:
            loss, parts = loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        if parts:  # <-- DDP402
            for each in parts:
                dist.all_reduce(each)
    return loss / dist.get_world_size()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    data = torch.load("data.pt")
    net = DDP(torch.nn.Linear(4, 1))
    loader = DataLoader(data, sampler=DistributedSampler(data))
    print(train(net, loader, torch.optim.SGD(net.parameters(), 0.1)))
    dist.destroy_process_group()
