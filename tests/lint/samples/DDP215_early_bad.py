import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


def place():
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


class Frames(IterableDataset):
    def __init__(self, number):
        self.number = number
        self.first, self.step = place()

    def __iter__(self):
        for number in range(self.first, self.number, self.step):
            yield torch.full((4,), float(number))


class Job:
    def __init__(self):
        dist.init_process_group("gloo")
        self.net = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def go_through(self, batches):
        for batch in batches:
            self.net(batch).mean().backward()
            self.opt.step()
            self.opt.zero_grad()


def main():
    frames = Frames(640)  # <-- DDP215
    Job().go_through(DataLoader(frames, batch_size=4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
