"""Forces on catalyst surfaces: systems of very different size in one data set.

Start with  torchrun --nproc_per_node=2 catalyst_energy.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler


class Systems(Dataset):
    """Bare slabs are large, gas phase molecules small; both are labelled by atom."""

    def __init__(self, n=200):
        g = torch.Generator().manual_seed(23)
        self.atoms, self.force = [], []
        w_slab, w_gas = torch.randn(2, 8, generator=g)
        for i in range(n):
            gas = i % 2
            m = int(torch.randint(2, 6, (1,), generator=g)) if gas else int(torch.randint(30, 60, (1,), generator=g))
            a = torch.randn(m, 8, generator=g)
            self.atoms.append(a)
            self.force.append(a @ (w_gas if gas else w_slab))

    def __len__(self):
        return len(self.atoms)

    def __getitem__(self, i):
        return self.atoms[i], self.force[i]


class SizeSortedShards(Sampler):
    """Even use of the processes: systems are dealt out by size, so that padding stays small."""

    def __init__(self, sizes, rank, world, batch):
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        usable = len(order) // (world * batch) * world * batch
        share = usable // world
        self.mine = order[rank * share:(rank + 1) * share]
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        g = torch.Generator().manual_seed(self.epoch)
        return iter(self.mine[j] for j in torch.randperm(len(self.mine), generator=g).tolist())

    def __len__(self):
        return len(self.mine)


def collate(batch):
    atoms, force = zip(*batch)
    return torch.cat(atoms), torch.cat(force)


class ForceHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 1, bias=False)

    def forward(self, a):
        return self.f(a).squeeze(-1)


class ForceTask:
    """Mean absolute error per atom, the number that the leaderboard uses."""

    def __init__(self, batch=10, lr=0.02, epochs=12):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.data = Systems()
        self.sampler = SizeSortedShards([len(a) for a in self.data.atoms], self.rank, self.world, batch)
        self.loader = DataLoader(self.data, batch, sampler=self.sampler, collate_fn=collate)
        torch.manual_seed(0)
        self.model = DDP(ForceHead())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.epochs = epochs

    def compute_loss(self, pred, target):
        atoms = torch.tensor(float(len(target)))
        dist.all_reduce(atoms)
        return (pred - target).abs().sum() * self.world / atoms

    def train(self):
        for epoch in range(self.epochs):
            self.sampler.set_epoch(epoch)
            total = torch.zeros(2)
            for atoms, force in self.loader:
                pred = self.model(atoms)
                loss = self.compute_loss(pred, force)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += torch.tensor([(pred - force).abs().sum().item(), float(len(force))])
            dist.all_reduce(total)
            if self.rank == 0 and epoch % 3 == 2:
                print(f"epoch {epoch} force mae {total[0] / total[1]:.4f} on {int(total[1])} atoms")
        dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ForceTask().train()
    dist.destroy_process_group()
