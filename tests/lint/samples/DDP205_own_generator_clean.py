import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from rings import Rings


class Diffusion:
    def __init__(self, seed):
        self.source = torch.Generator()
        self.source.manual_seed(seed)

    def __call__(self, x):
        noise = torch.randn(x.shape, generator=self.source)
        return x + noise, noise


def main(seed=42):
    dist.init_process_group("gloo")
    data = Rings()
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    diffusion = Diffusion(seed + dist.get_rank())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x in DataLoader(data, 16, sampler=sampler):
            noisy, noise = diffusion(x)
            loss = (model(noisy) - noise).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
