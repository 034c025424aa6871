import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

hyper_params = dict(
    epochs=14,
    lr=0.05,
    batch_size=16,
    lr_decay_factor=0.5,
    lr_reduce_patience=3,
    seed=21,
)


def make_loaders(bs):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(320, 12, generator=g)
    w = torch.randn(12, 1, generator=g)
    y = x @ w + 0.5 * torch.randn(320, 1, generator=g)
    train = TensorDataset(x[:256], y[:256])
    val = TensorDataset(x[256:], y[256:])
    return DataLoader(train, bs, shuffle=True), DataLoader(val, bs)


class ModelBundle:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 1))
        self.loss_fn = nn.MSELoss()


@torch.no_grad()
def run_eval(accelerator, model, loader, loss_fn):
    model.eval()
    errs = []
    for xb, yb in loader:
        pred, ref = accelerator.gather_for_metrics((model(xb), yb))
        errs.append((pred - ref).pow(2).flatten())
    model.train()
    return torch.cat(errs).mean().item()


def main(hp):
    accelerator = Accelerator(cpu=True)
    set_seed(hp["seed"])
    bundle = ModelBundle()
    train_loader, val_loader = make_loaders(hp["batch_size"])
    optimizer = torch.optim.SGD(bundle.model.parameters(), lr=hp["lr"])
    lr_scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="min", factor=hp["lr_decay_factor"], patience=hp["lr_reduce_patience"])
    model, optimizer, train_loader, val_loader, lr_scheduler = accelerator.prepare(
        bundle.model, optimizer, train_loader, val_loader, lr_scheduler)

    for epoch in range(hp["epochs"]):
        for xb, yb in train_loader:
            loss = bundle.loss_fn(model(xb), yb)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        val_loss = run_eval(accelerator, model, val_loader, bundle.loss_fn)
        lr_scheduler.step(val_loss)
        accelerator.print(f"epoch {epoch:2d} val {val_loss:.4f} lr {optimizer.param_groups[0]['lr']:.5f}")
    accelerator.end_training()


if __name__ == "__main__":
    main(hyper_params)
