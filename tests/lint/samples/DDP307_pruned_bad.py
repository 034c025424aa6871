import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Pruned(Exception):
    pass


def attempt(rate):
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    net = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for rows, wanted in DataLoader(data, batch_size=8, sampler=sampler):
            optimizer.zero_grad()
            loss = (net(rows) - wanted).pow(2).mean()
            loss.backward()
            optimizer.step()
        verdict = loss.detach() > 1.5
        if bool(verdict):
            raise Pruned(f"{epoch}")


def main():
    dist.init_process_group("gloo")
    for rate in (0.1, 0.01, 0.001):
        try:
            attempt(rate)
        except Pruned as why:
            print(why)
            continue  # <-- DDP307
        print(rate)


if __name__ == "__main__":
    main()
