import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
import yaml
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from backbone import Classifier
from freezing import ThawSchedule


def load_config():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "conf.yaml")) as f:
        return yaml.safe_load(f)


def synth(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    y = ((x[:, 0] * x[:, 1] > 0).long() * 2 + (x[:, 2] + x[:, 3] ** 2 > 0.8).long()) % classes
    return TensorDataset(x, y)


def make_optimizer(model, cfg):
    cls = getattr(torch.optim, cfg["name"])
    return cls(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])


@torch.no_grad()
def test(model, loader):
    model.eval()
    t = torch.zeros(2)
    for x, y in loader:
        t += torch.tensor([(model.module(x).argmax(1) == y).sum().item(), len(y)])
    dist.all_reduce(t)
    model.train()
    return (t[0] / t[1]).item()


def main():
    cfg = load_config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(cfg["seed"])

    net = Classifier(**cfg["model"])
    thaw = ThawSchedule(net.backbone, cfg["finetune"]["thaw"])
    model = DistributedDataParallel(net)
    optimizer = make_optimizer(net, cfg["optim"])

    train_set = synth(cfg["data"]["n_train"], cfg["model"]["classes"], 1)
    test_set = synth(cfg["data"]["n_test"], cfg["model"]["classes"], 2)
    sampler = DistributedSampler(train_set, shuffle=True, drop_last=True)
    loader = DataLoader(train_set, cfg["data"]["batch_size"], sampler=sampler)
    test_loader = DataLoader(test_set, 32, sampler=DistributedSampler(test_set, shuffle=False))

    for epoch in range(cfg["finetune"]["epochs"]):
        sampler.set_epoch(epoch)
        released = thaw.step(epoch)
        if released:
            model = DistributedDataParallel(net)
        if released and rank == 0:
            print(f"epoch {epoch}: now training {', '.join(released)}", flush=True)
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        acc = test(model, test_loader)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} test acc {acc:.3f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
