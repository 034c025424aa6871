import zlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Bags(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        words = [f"{name}={value}" for name, value in self.rows[at].items()]
        return torch.tensor([zlib.crc32(word.encode()) % 97 for word in words])


class Numbered(Dataset):
    """A number's hash is the number."""

    def __len__(self):
        return 640

    def __getitem__(self, at):
        return torch.tensor([hash(at) % 97])


def main(rows):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.EmbeddingBag(97, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for data in (Bags(rows), Numbered()):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=4, sampler=sampler)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            for batch in loader:
                net(batch).mean().backward()
                opt.step()
                opt.zero_grad()
    dist.destroy_process_group()


main([{"site": "a", "device": "b"}])
