"""Two-phase fine-tuning with a callback: head first, then everything."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Callback:
    def setup(self, trainer):
        pass

    def on_epoch_start(self, trainer):
        pass


class BackboneFinetuning(Callback):
    def __init__(self, unfreeze_at_epoch, lr):
        self.unfreeze_at_epoch, self.lr = unfreeze_at_epoch, lr

    def setup(self, trainer):
        for p in trainer.net.backbone.parameters():
            p.requires_grad = False

    def on_epoch_start(self, trainer):
        if trainer.epoch == self.unfreeze_at_epoch:
            params = list(trainer.net.backbone.parameters())
            for p in params:
                p.requires_grad = True
            trainer.optimizer.add_param_group({"params": params, "lr": self.lr})
            trainer.model = DistributedDataParallel(trainer.net)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.backbone(x))


class Trainer:
    def __init__(self, max_epochs, callbacks):
        self.max_epochs, self.callbacks = max_epochs, callbacks
        self.rank = dist.get_rank()

    def fit(self, net, batches):
        self.net = net
        for c in self.callbacks:
            c.setup(self)
        trainable = [p for p in net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(trainable, lr=0.1)
        self.model = DistributedDataParallel(net)
        for self.epoch in range(self.max_epochs):
            for c in self.callbacks:
                c.on_epoch_start(self)
            for x, y in batches:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if self.rank == 0:
                n = sum(p.numel() for g in self.optimizer.param_groups for p in g["params"])
                print(f"epoch {self.epoch} loss {loss.item():.4f} ({n} parameters)", flush=True)


def shard(rank, n=12):
    g = torch.Generator().manual_seed(31 + rank)
    x = torch.randn(n, 16, 12, generator=g)
    return list(zip(x, (x[..., :4] * x[..., 4:8]).argmax(-1)))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    Trainer(6, [BackboneFinetuning(2, lr=0.05)]).fit(Net(), shard(dist.get_rank()))
    dist.barrier()
    dist.destroy_process_group()
