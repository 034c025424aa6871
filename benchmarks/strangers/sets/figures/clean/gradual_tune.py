"""Two-stage fine-tuning: head only first, then the whole network."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WARM_EPOCHS = 1
EPOCHS = 4
BATCH = 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(32, 96), nn.Tanh(), nn.Linear(96, 48), nn.Tanh())
        self.head = nn.Linear(48, 8)

    def forward(self, x):
        return self.head(self.backbone(x))

    def set_backbone_trainable(self, flag):
        for p in self.backbone.parameters():
            p.requires_grad_(flag)


def dataset(n=576):
    g = torch.Generator().manual_seed(9)
    y = torch.randint(0, 8, (n,), generator=g)
    return TensorDataset(torch.randn(8, 32, generator=g)[y] + torch.randn(n, 32, generator=g), y)


class FineTuner:
    def __init__(self):
        self.rank = dist.get_rank()
        torch.manual_seed(21)
        net = Net()
        net.set_backbone_trainable(False)
        self.model = DistributedDataParallel(net)
        self.opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.train_set = dataset()
        self.sampler = DistributedSampler(self.train_set)
        self.loader = DataLoader(self.train_set, BATCH, sampler=self.sampler)

    def begin_full_finetune(self):
        self.model.module.set_backbone_trainable(True)
        self.model = DistributedDataParallel(self.model.module)
        for group in self.opt.param_groups:
            group["lr"] *= 0.5

    def fit(self):
        for epoch in range(EPOCHS):
            if epoch == WARM_EPOCHS:
                self.begin_full_finetune()
            self.sampler.set_epoch(epoch)
            losses = []
            for x, y in self.loader:
                self.opt.zero_grad()
                loss = nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                self.opt.step()
                losses.append(loss.item())
            if self.rank == 0:
                print(f"epoch {epoch} | {len(losses)} steps | loss {sum(losses) / len(losses):.4f}")


def main():
    dist.init_process_group("gloo")
    tuner = FineTuner()
    tuner.fit()
    if tuner.rank == 0:
        torch.save(tuner.model.module.state_dict(), "tuned.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
