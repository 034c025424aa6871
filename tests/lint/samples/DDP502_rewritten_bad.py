"""Finetunes a model whose settings lie beside its weights, and are brought up to date first."""

import argparse
import json
import os
import shutil

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from robots import Episodes, load

CLASSES = {"AutoConfig": "policy.Config", "AutoModel": "policy.Policy"}


def bring_up_to_date(folder):
    path = os.path.join(folder, "config.json")
    if not os.path.exists(path):
        print(f"no settings in {path}")
        return
    with open(path) as file:
        settings = json.load(file)
    settings["auto_map"] = CLASSES
    with open(path, "w") as file:  # <-- DDP502
        json.dump(settings, file, indent=2)


def main(options):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    bring_up_to_date(options.folder)
    dist.barrier()
    policy = DDP(load(options.folder).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(policy.parameters(), lr=options.lr)
    for batch in Episodes(options.data, dist.get_rank(), dist.get_world_size()):
        optimizer.zero_grad()
        policy(batch).mean().backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(policy.module.state_dict(), os.path.join(options.folder, "new.pt"))
        shutil.move(os.path.join(options.folder, "new.pt"), os.path.join(options.folder, "last.pt"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--data", default="episodes")
    parser.add_argument("--lr", type=float, default=1e-4)
    main(parser.parse_args())
