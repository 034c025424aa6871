"""Per-atom forces; batches hold molecules of any size.

    torchrun --nproc_per_node=2 molecule_forces.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Molecules(Dataset):
    def __init__(self, n=160):
        g = torch.Generator().manual_seed(33)
        self.items = []
        for _ in range(n):
            m = int(torch.randint(1, 40, (1,), generator=g))
            a = torch.randn(m, 6, generator=g)
            self.items.append((a, torch.tanh(a[:, :3]) - a.mean(0)[:3]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    sizes = torch.tensor([len(a) for a, _ in batch])
    owner = torch.repeat_interleave(torch.arange(len(batch)), sizes)
    return torch.cat([a for a, _ in batch]), torch.cat([f for _, f in batch]), owner, sizes


class ForceNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Linear(6, width)
        self.mix = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 3)

    def forward(self, atoms, owner, sizes):
        h = torch.relu(self.embed(atoms))
        mean = torch.zeros(len(sizes), h.shape[1]).index_add(0, owner, h) / sizes[:, None]
        return self.out(torch.relu(self.mix(torch.cat([h, mean[owner]], 1))))


def main(epochs=4):
    rank, world = dist.get_rank(), dist.get_world_size()
    data = Molecules()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler, collate_fn=collate)
    model = DDP(ForceNet())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        meter = torch.zeros(2)
        for atoms, force, owner, sizes in loader:
            n_all = torch.tensor(float(len(atoms)))
            dist.all_reduce(n_all)
            err = (model(atoms, owner, sizes) - force).abs().sum()
            loss = err / n_all * world
            opt.zero_grad()
            loss.backward()
            opt.step()
            meter += torch.tensor([err.item(), float(len(atoms))])
        dist.all_reduce(meter)
        if rank == 0:
            print(f"epoch {epoch} force L1 per atom {meter[0] / meter[1]:.4f}")
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
