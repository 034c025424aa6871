import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader


class Job:
    def __init__(self, data):
        plan = DataLoaderConfiguration(split_batches=False, even_batches=False)  # <-- DDP207
        self.hf = Accelerator(dataloader_config=plan)
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        self.net, self.optimizer, self.batches = self.hf.prepare(
            net, optimizer, DataLoader(data, 8)
        )

    def run(self):
        for batch in self.batches:
            self.optimizer.zero_grad()
            self.hf.backward(self.net(batch).square().mean())
            self.optimizer.step()


Job([torch.ones(4)] * 99).run()
