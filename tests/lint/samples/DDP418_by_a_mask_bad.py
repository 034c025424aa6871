import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Deviation:
    def __init__(self):
        self.begin()

    def begin(self):
        self.seen = []

    def add(self, guess, truth):
        labelled = truth >= 0
        self.seen.extend((guess[labelled] - truth[labelled]).abs().tolist())

    def over_all(self):
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, self.seen)
        whole = [number for part in parts for number in part]
        return sum(whole) / max(len(whole), 1)


class Test:
    def __init__(self, loader):
        self.loader = loader
        self.deviation = Deviation()

    @torch.no_grad()
    def __call__(self, net):
        self.deviation.begin()
        for x, y in self.loader:
            self.deviation.add(net(x).squeeze(1), y)
        found = {}
        if len(self.deviation.seen) > 0:  # <-- DDP418
            found["deviation"] = self.deviation.over_all()
        return found


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.rand(64, 4), torch.randn(64))
    sampler = DistributedSampler(data, shuffle=False)
    net = DDP(torch.nn.Linear(4, 1))
    test = Test(DataLoader(data, batch_size=8, sampler=sampler))
    found = test(net.module)
    if dist.get_rank() == 0:
        print(found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
