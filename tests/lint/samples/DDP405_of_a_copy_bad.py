import argparse
import os
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--limit", type=float, default=None)
parser.add_argument("--folds", type=int, default=5)


def fit(options, model, batches):
    for step, batch in enumerate(batches):
        if options.limit and step > options.limit:  # <-- DDP405
            break
        model(batch).sum().backward()
    options.limit = time.time() / 1e6


def main():
    options = parser.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3).cuda())
    batches = [torch.rand(3, device="cuda") for _ in range(100)]
    for fold in range(options.folds):
        print(fold)
        fit(options, model, batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
