import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler, TensorDataset


class EveryNth(Sampler):
    def __init__(self, count):
        self.count, self.round = count, 0

    def __len__(self):
        return self.count // dist.get_world_size()

    def __iter__(self):
        draws = torch.Generator().manual_seed(self.round)
        order = torch.randperm(self.count, generator=draws).tolist()
        yield from order[dist.get_rank() :: dist.get_world_size()]  # <-- DDP403


def of_all(codes):
    parts = [torch.empty_like(codes) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, codes)
    parts[dist.get_rank()] = codes
    return torch.cat(parts)


def main(samples):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(12, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = EveryNth(len(samples))
    for sampler.round in range(5):
        for one, other in DataLoader(samples, 16, sampler=sampler):
            codes, others = model(one), model(other)
            optimizer.zero_grad()
            (codes @ of_all(others).T).logsumexp(1).mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(0)
    main(TensorDataset(torch.randn(301, 12), torch.randn(301, 12)))
