import argparse
import os

import nets
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

names = sorted(each for each in nets.__dict__ if each.islower() and not each.startswith("_"))
parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="small", choices=names)
parser.add_argument("--judge", default="large")
parser.add_argument("--loss", default="mean")
parser.add_argument("--epochs", type=int, default=5)
LOSSES = {
    "sum": nets.of_sum,
    "max": nets.of_max,
    "mean": nets.of_mean,
    "least": nets.of_least,
    "power": nets.of_power,
}


def main(args):
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = nets.__dict__[args.arch](classes=10).to(device)
    judge = getattr(nets, args.judge)(classes=1).to(device)
    model = DistributedDataParallel(model, device_ids=[device])
    checker = DistributedDataParallel(judge, device_ids=[device])
    both = [*model.parameters(), *checker.parameters()]
    optimizer = torch.optim.SGD(both, lr=0.1)
    for _ in range(args.epochs):
        rows = torch.randn(16, 8, device=device)
        loss = LOSSES[args.loss](model, rows) + checker(rows).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(parser.parse_args())
