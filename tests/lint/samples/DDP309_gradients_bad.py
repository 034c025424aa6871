import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer
        self.seen = 0

    def learn(self, rows, wanted):
        loss = ((self.net(rows) - wanted).pow(2) * (wanted > 0)).sum()
        loss.backward()
        self.seen += (wanted > 0).sum()

    def step(self):
        seen = self.seen
        for group in self.optimizer.param_groups:
            for weight in group["params"]:
                weight.grad /= seen  # <-- DDP309
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.seen = 0


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    net = DDP(torch.nn.Linear(3, 1))
    trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for rows, wanted in loader:
            trainer.learn(rows, wanted)
            trainer.step()


if __name__ == "__main__":
    main()
