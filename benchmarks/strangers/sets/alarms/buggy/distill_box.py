"""Knowledge distillation from a config dictionary; the teacher is frozen, the student is trained."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

config = {
    "models": {
        "teacher": {"width": 64, "requires_grad": False},
        "student": {"width": 12, "requires_grad": True},
    },
    "train": {"steps": 25, "batch": 16, "optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}}},
    "criterion": {"temperature": 2.0, "alpha": 0.7},
    "dist": {"backend": "gloo"},
}


def build_model(cfg):
    net = nn.Sequential(nn.Linear(10, cfg["width"]), nn.ReLU(), nn.Linear(cfg["width"], 4))
    for p in net.parameters():
        p.requires_grad_(cfg["requires_grad"])
    return net


def wrap_model(model, distributed):
    if distributed:
        return DistributedDataParallel(model)
    return model


def kd_loss(s, t, y, temperature, alpha):
    soft = F.kl_div(F.log_softmax(s / temperature, 1), F.softmax(t / temperature, 1), reduction="batchmean")
    return alpha * temperature ** 2 * soft + (1 - alpha) * F.cross_entropy(s, y)


class DistillationBox:
    def __init__(self, cfg):
        self.cfg = cfg
        distributed = dist.get_world_size() > 1
        torch.manual_seed(0)
        nets = {name: wrap_model(build_model(m), distributed) for name, m in cfg["models"].items()}
        self.teacher, self.student = nets["teacher"].eval(), nets["student"]
        opt = cfg["train"]["optimizer"]
        self.opt = getattr(torch.optim, opt["type"])(self.student.parameters(), **opt["params"])

    def step(self, x, y):
        with torch.no_grad():
            t = self.teacher(x)
        loss = kd_loss(self.student(x), t, y, **self.cfg["criterion"])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main():
    dist.init_process_group(config["dist"]["backend"])
    box = DistillationBox(config)
    g = torch.Generator().manual_seed(dist.get_rank())
    for step in range(config["train"]["steps"]):
        x = torch.randn(config["train"]["batch"], 10, generator=g)
        loss = box.step(x, x[:, :4].argmax(1))
    if dist.get_rank() == 0:
        print(f"final loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
