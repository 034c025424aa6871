import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler


class Notes(Dataset):
    def __init__(self, many=100):
        generator = torch.Generator().manual_seed(1)
        self.sizes = torch.randint(3, 30, (many,), generator=generator).tolist()

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, at):
        return torch.ones(self.sizes[at], 4)


class Packed(Sampler):
    """Four notes in a batch, each of which is cut to fit."""

    def __init__(self, picks, sizes, room):
        self.picks, self.sizes, self.room = picks, sizes, room

    def __iter__(self):
        pack, taken = [], 0
        for at in self.picks:
            pack.append(at)
            taken += 1
            if taken == self.room:
                yield pack
                pack, taken = [], 0


def main():
    dist.init_process_group("gloo")
    notes = Notes()
    picks = DistributedSampler(notes)
    loader = DataLoader(notes, batch_sampler=Packed(picks, notes.sizes, 4), collate_fn=torch.cat)
    net = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        picks.set_epoch(epoch)
        for rows in loader:
            loss = net(rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


main()
