import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Loop:
    def __init__(self, net, loader, batch, part):
        self.net = DistributedDataParallel(net)
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.loader, self.batch, self.part = loader, batch, part
        self.whole = batch

    def step(self, x, y):
        self.opt.zero_grad()
        rows = ((self.net(x) - y) ** 2).mean()
        loss = rows * self.part * dist.get_world_size() / self.whole  # <-- DDP211
        loss.backward()
        self.opt.step()

    def run(self):
        for epoch in range(3):
            self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.step(x, y)


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, 8, sampler=DistributedSampler(data), drop_last=True)
    Loop(torch.nn.Linear(4, 1), loader, 8, 8).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
