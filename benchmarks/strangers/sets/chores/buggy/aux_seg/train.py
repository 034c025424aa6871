import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from model import TinySeg, seg_loss


class Squares(Dataset):
    def __init__(self, n, size=16):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = 0.1 * torch.randn(3, self.size, self.size, generator=g)
        mask = torch.zeros(self.size, self.size, dtype=torch.long)
        top, left = torch.randint(0, self.size // 2, (2,), generator=g).tolist()
        label = 1 + i % 2
        img[label, top:top + 6, left:left + 6] += 1.0
        mask[top:top + 6, left:left + 6] = label
        return img, mask


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--side-epochs", type=int, default=1)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.01)
    return p.parse_args()


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(11)
    data = Squares(128)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    model = DDP(TinySeg())
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        with_side = epoch < args.side_epochs
        for img, mask in loader:
            out = model(img, with_side=with_side)
            loss = seg_loss(out, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} side={with_side} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
