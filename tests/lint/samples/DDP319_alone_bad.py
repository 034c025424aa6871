import argparse

import torch
import torch.distributed as dist


def join(local_rank, on_cpu):
    if local_rank != -1 and not on_cpu:
        torch.cuda.set_device(local_rank)
        dist.init_process_group("nccl")


def test():
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=-1)
    parser.add_argument("--on-cpu", action="store_true")
    options = parser.parse_args()
    join(options.number, options.on_cpu)
    if options.number == -1:
        print("one process")
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda())  # <-- DDP319
    print(model.eval()(torch.rand(2, 2)))


test()
