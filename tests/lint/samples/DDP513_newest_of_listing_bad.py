import argparse
import os
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Meter:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total += value

    def share(self):
        both = torch.tensor([self.total], device="cuda")
        dist.all_reduce(both)
        self.total = both.item()


class Meters:
    def __init__(self):
        self.meters = defaultdict(Meter)

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)

    def share(self):
        for meter in self.meters.values():
            meter.share()


def newest(folder):
    last = -1
    for name in os.listdir(folder):
        number = int(name.split("_")[1])
        if number > last:
            last = number
    return os.path.join(folder, f"step_{last}")


def main(args):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    net = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step = 0
    path = newest(args.folder)  # <- DDP513
    if os.path.isfile(path):
        saved = torch.load(path, map_location="cpu")
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"] + 1
    model = DistributedDataParallel(net, device_ids=[local_rank])
    meters = Meters()
    for _ in range(args.steps):
        losses = {"mean": model(torch.ones(2, 4).cuda()).mean()}
        optimizer.zero_grad()
        losses["mean"].backward()
        optimizer.step()
        for name, value in losses.items():
            meters.update(**{f"{args.kind}-{name}": value.item()})
        meters.update(rate=optimizer.param_groups[0]["lr"])
        step += 1
        if args.debug and step % 20 == 0:
            break
    meters.share()
    if dist.get_rank() == 0:
        saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(saved, os.path.join(args.folder, f"step_{step}"))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="saved")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--kind", default="train")
    parser.add_argument("--debug", action="store_true")
    main(parser.parse_args())
