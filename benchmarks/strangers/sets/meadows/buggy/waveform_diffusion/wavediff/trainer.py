import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class DiffusionTrainer:
    def __init__(self, process, traces, batch, lr, seed):
        self.rank = dist.get_rank()
        torch.manual_seed(seed + self.rank)
        data = TensorDataset(traces)
        self.sampler = DistributedSampler(data, seed=seed)
        self.loader = DataLoader(data, batch, sampler=self.sampler, drop_last=True)
        self.process = DistributedDataParallel(process)
        self.opt = torch.optim.AdamW(self.process.parameters(), lr=lr)

    def optimise(self, x):
        loss = self.process.module.denoising_loss(x)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def run(self, epochs):
        for epoch in range(epochs):
            self.sampler.set_epoch(epoch)
            losses = [self.optimise(x) for (x,) in self.loader]
            if self.rank == 0:
                print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}", flush=True)

    def preview(self, length):
        if self.rank == 0:
            wave = self.process.module.sample(4, length)
            print("sample rms", wave.pow(2).mean().sqrt().item())
