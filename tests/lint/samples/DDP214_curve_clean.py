import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.no_grad()
def judge(net, loader):
    nats, tokens = 0.0, 0
    for ids, mask in loader:
        scores = net.module(F.one_hot(ids, 16).float())
        lost = F.cross_entropy(scores.flatten(0, 1), ids.flatten(), reduction="none")
        nats += (lost * mask.flatten()).sum().item()
        tokens += mask.sum().item()
    sums = torch.tensor([nats, tokens])
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).exp().item()


def main():
    dist.init_process_group("gloo")
    ids = torch.randint(16, (64, 8), generator=torch.Generator().manual_seed(1))
    data = TensorDataset(ids, (ids > 3).float())
    sampler = DistributedSampler(data, shuffle=False)
    net = DDP(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for ids, _ in DataLoader(data, batch_size=8, sampler=sampler):
        scores = net(F.one_hot(ids, 16).float())
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
    print(judge(net, DataLoader(data, batch_size=8, sampler=sampler)))


if __name__ == "__main__":
    main()
