"""The trainer is that of a module of which a setting has the whole name."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import importlib


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DistributedDataParallel(torch.nn.Linear(3, 1).cuda(), device_ids=[local])
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    sampler.set_epoch(0)
    loader = DataLoader(data, batch_size=4, sampler=sampler, drop_last=True)
    importlib.import_module(args.trainer).Trainer(model, loader).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
