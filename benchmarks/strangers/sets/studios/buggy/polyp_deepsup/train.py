"""Polyp masks, toy version.  torchrun --nproc-per-node 2 train.py"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from criterion import MultiScale, soft_dice
from model import UNetDS
from plan import ScalePlan

hp = dict(side=24, train=96, val=24, epochs=6, bs=12, lr=4e-3, seed=31)


class Polyps(Dataset):
    def __init__(self, n, side, seed):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        c = torch.randint(6, side - 6, (n, 2), generator=g).view(n, 2, 1, 1)
        r = torch.randint(3, 7, (n, 1, 1), generator=g)
        self.mask = (((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2) < r ** 2).float().unsqueeze(1)
        self.img = torch.rand(n, 3, side, side, generator=g) * 0.8 + 0.4 * self.mask

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.mask[i]


def validate(ddp, ds):
    net = ddp.module.eval()
    rank, world = dist.get_rank(), dist.get_world_size()
    acc = torch.zeros(2)
    with torch.no_grad():
        for i in range(rank, len(ds), world):
            img, mask = ds[i]
            acc += torch.tensor([1 - soft_dice(net(img[None]), mask[None]).item(), 1.0])
    dist.all_reduce(acc)
    net.train()
    return (acc[0] / acc[1]).item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(hp["seed"])
    train, val = Polyps(hp["train"], hp["side"], 1), Polyps(hp["val"], hp["side"], 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, hp["bs"], sampler=sampler)
    ddp = DDP(UNetDS())
    opt = torch.optim.AdamW(ddp.parameters(), lr=hp["lr"])
    sched = CosineAnnealingLR(opt, hp["epochs"])
    plan = ScalePlan()
    for epoch in range(hp["epochs"]):
        sampler.set_epoch(epoch)
        criterion = MultiScale(plan.at(epoch))
        for img, mask in loader:
            loss = criterion(ddp(img), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        dice = validate(ddp, val)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} dice {dice:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
