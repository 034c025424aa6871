import io

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler, TensorDataset


class ResumableSampler(Sampler):
    """Shared permutation per epoch, dealt out to the ranks one by one.  `start` is the
    position in the permutation up to which everything has been consumed."""

    def __init__(self, n, rank, world, seed=0):
        self.n, self.rank, self.world, self.seed = n, rank, world, seed
        self.epoch, self.start = 0, 0

    def set_state(self, epoch, start=0):
        self.epoch, self.start = epoch, start

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        perm = torch.randperm(self.n, generator=g)[self.start:]
        perm = perm[:len(perm) // self.world * self.world]
        return iter(perm[self.rank::self.world].tolist())

    def __len__(self):
        return (self.n - self.start) // self.world


class Job:
    def __init__(self, batch=8, n=192):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        g = torch.Generator().manual_seed(1)
        x = torch.randn(n, 6, generator=g)
        self.data = TensorDataset(x, x.pow(2).sum(1, keepdim=True))
        self.batch = batch
        self.sampler = ResumableSampler(n, self.rank, self.world)
        self.loader = DataLoader(self.data, batch, sampler=self.sampler)
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1)))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.epoch = self.step_in_epoch = 0

    def save(self):
        buf = io.BytesIO()
        torch.save(dict(model=self.model.module.state_dict(), opt=self.opt.state_dict(),
                        epoch=self.epoch, step=self.step_in_epoch), buf)
        return buf.getvalue()

    def load(self, blob):
        ck = torch.load(io.BytesIO(blob), weights_only=True)
        self.model.module.load_state_dict(ck["model"])
        self.opt.load_state_dict(ck["opt"])
        self.epoch, self.step_in_epoch = ck["epoch"], ck["step"]
        self.sampler.set_state(self.epoch, start=self.step_in_epoch * self.batch)

    def train(self, epochs, budget=None):
        while self.epoch < epochs:
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.step_in_epoch += 1
                if budget is not None:
                    budget -= 1
                    if budget == 0:
                        return loss.item()
            self.epoch, self.step_in_epoch = self.epoch + 1, 0
            self.sampler.set_state(self.epoch)
            if self.rank == 0:
                print("epoch", self.epoch, "done, loss %.3f" % loss.item(), flush=True)


def main():
    dist.init_process_group("gloo")
    first = Job()
    first.train(epochs=3, budget=17)
    box = [first.save() if first.rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    second = Job()
    second.load(box[0])
    second.train(epochs=3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
