"""Curriculum: every level starts from the best weights of the one before.   torchrun --nproc_per_node 2 recipe.py"""
import torch
from torch import nn

from fabric import Fabric
from series import Windows

LEVELS = [
    {"name": "clean", "noise": 0.05, "epochs": 2},
    {"name": "noisy", "noise": 0.3, "epochs": 2},
    {"name": "storm", "noise": 0.8, "epochs": 2},
]


def numpy_state(module):
    return {k: v.detach().numpy().copy() for k, v in module.state_dict().items()}


def run_level(fabric, model, opt, level):
    train = fabric.loader(Windows(500, level["noise"], seed=1), 16, shuffle=True)
    valid = fabric.loader(Windows(300, level["noise"], seed=2), 64, shuffle=False)
    best = float("inf")
    for epoch in range(level["epochs"]):
        train.sampler.set_epoch(epoch)
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            err = fabric.mean(sum(nn.functional.mse_loss(model.module(x), y).item() for x, y in valid) / len(valid))
        fabric.print(f"{level['name']:>6} epoch {epoch} valid mse {err:.4f}")
        if err < best:
            best = err
            fabric.save(f"{level['name']}/best.pkl.gz", model=numpy_state(model.module), err=err)
    state = fabric.load(f"{level['name']}/best.pkl.gz")
    model.module.load_state_dict({k: torch.from_numpy(v) for k, v in state["model"].items()})
    return state["err"]


def main():
    fabric = Fabric(seed=5)
    model = fabric.setup(nn.Sequential(nn.Linear(48, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 6)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for level in LEVELS:
        fabric.print(f"{level['name']} best {run_level(fabric, model, opt, level):.4f}")
    fabric.close()


if __name__ == "__main__":
    main()
