import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from corpus import TokenWindows
from model import WindowLM


def endless(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


class Pretrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        data = TokenWindows(cfg["corpus"], cfg["context"], cfg["vocab"])
        sampler = DistributedSampler(data)
        self.stream = endless(DataLoader(data, cfg["micro_batch"], sampler=sampler, drop_last=True), sampler)
        net = WindowLM(cfg["vocab"], cfg["dim"], cfg["context"], cfg["hidden"])
        self.net = DistributedDataParallel(net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=cfg["lr"], momentum=0.9)

    def deferred(self, micro):
        last = micro == self.cfg["accumulate"] - 1
        return contextlib.nullcontext() if last else self.net.no_sync()

    def update(self):
        self.opt.zero_grad()
        shown = 0.0
        for micro in range(self.cfg["accumulate"]):
            window, following = next(self.stream)
            with self.deferred(micro):
                loss = self.net(window, following) / self.cfg["accumulate"]
                loss.backward()
            shown += loss.item()
        self.opt.step()
        return shown


def main(path):
    with open(path) as f:
        cfg = yaml.safe_load(f)
    dist.init_process_group("gloo")
    torch.manual_seed(1234)
    job = Pretrainer(cfg)
    dist.barrier()
    began = time.perf_counter()
    for n in range(cfg["updates"]):
        loss = job.update()
        if dist.get_rank() == 0:
            print(f"update {n} loss {loss:.3f} {time.perf_counter() - began:.2f}s", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "config.yaml"))
    dist.destroy_process_group()
