# style: two-stage fine-tuning with a callback that unfreezes
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.backbone(x))


class Callback:
    def on_epoch_start(self, trainer, epoch):
        pass


class UnfreezeBackbone(Callback):
    def __init__(self, at_epoch):
        self.at_epoch = at_epoch

    def on_epoch_start(self, trainer, epoch):
        if epoch == self.at_epoch:
            for p in trainer.model.module.backbone.parameters():
                p.requires_grad = True
            trainer.rewrap()


class Trainer:
    def __init__(self, model, callbacks, lr=1e-2):
        for p in model.backbone.parameters():
            p.requires_grad = False
        self.model = DDP(model)
        self.callbacks = callbacks
        self.lr = lr
        self.optimizer = self.make_optimizer()

    def make_optimizer(self):
        params = [p for p in self.model.parameters() if p.requires_grad]
        return torch.optim.SGD(params, lr=self.lr)

    def rewrap(self):
        self.model = DDP(self.model.module)
        self.optimizer = self.make_optimizer()

    def data(self, epoch, steps=5):
        rank, world = dist.get_rank(), dist.get_world_size()
        generator = torch.Generator().manual_seed(1000 + epoch)
        for _ in range(steps):
            x = torch.randn(4 * world, 8, generator=generator)[rank::world]
            yield x, x.abs().sum(dim=1, keepdim=True)

    def fit(self, epochs):
        for epoch in range(epochs):
            for callback in self.callbacks:
                callback.on_epoch_start(self, epoch)
            for x, y in self.data(epoch):
                loss = nn.functional.smooth_l1_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if dist.get_rank() == 0:
                print(f"[{epoch}] {loss.item():.3f}")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(42)
    Trainer(Net(), [UnfreezeBackbone(at_epoch=1)]).fit(epochs=3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
