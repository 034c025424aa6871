# style: DistributedSamplerWrapper around a weighted sampler, seeded splits, cached data
# nproc: 2
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    WeightedRandomSampler,
    random_split,
)


class SamplerDataset(Dataset):
    def __init__(self, sampler):
        self.sampler, self.indices = sampler, None

    def __getitem__(self, i):
        if self.indices is None:
            self.indices = list(self.sampler)
        return self.indices[i]

    def __len__(self):
        return len(self.sampler)


class DistributedSamplerWrapper(DistributedSampler):
    def __init__(self, sampler, **kwargs):
        super().__init__(SamplerDataset(sampler), **kwargs)
        self.sampler = sampler

    def __iter__(self):
        self.dataset = SamplerDataset(self.sampler)
        return iter([self.dataset[i] for i in super().__iter__()])


class Rows(Dataset):
    def __init__(self, file):
        with open(file) as lines:
            self.rows = json.load(lines)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i][:3]), torch.tensor(self.rows[i][3:])


def cached(path):
    if dist.get_rank() == 0 and not os.path.exists(path):
        values = torch.rand(60, 4, generator=torch.Generator().manual_seed(1))
        with open(path + ".tmp", "w") as out:
            json.dump(values.tolist(), out)
        os.replace(path + ".tmp", path)
    dist.barrier()
    return path


def main():
    dist.init_process_group("gloo")
    dataset = Rows(cached("rows.json"))
    seeded = torch.Generator().manual_seed(0)
    train, valid = random_split(dataset, [48, 12], generator=seeded)
    weights = torch.arange(1, 49).float()
    draw = WeightedRandomSampler(weights, 48, generator=torch.Generator().manual_seed(7))
    sampler = DistributedSamplerWrapper(draw, shuffle=False)
    loader = DataLoader(train, batch_size=4, sampler=sampler)
    valid_loader = DataLoader(valid, batch_size=4, sampler=DistributedSampler(valid, shuffle=False))
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        total = torch.zeros(2)
        with torch.no_grad():
            for x, y in valid_loader:
                total += torch.tensor([nn.functional.mse_loss(model(x), y) * len(x), len(x)])
        dist.all_reduce(total)
        assert total[1] == len(valid)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {total[0] / total[1]:.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
