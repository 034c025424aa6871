"""Each builds the loader of its own part: parts need not be as long."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from vision_things import build_loader, build_model, resolve_settings


def train(loader, model, optimizer):
    for images, labels in loader:  # <-- DDP207
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    bare = build_model(device=device).to(local_rank)
    settings = resolve_settings(args, part=rank)
    loader = build_loader(args.data, settings, pin_memory_device=device)
    for tensor in bare.state_dict().values():
        dist.broadcast(tensor, 0)
    model = DistributedDataParallel(bare, device_ids=[local_rank])
    train(loader, model, torch.optim.SGD(model.parameters(), lr=0.1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
