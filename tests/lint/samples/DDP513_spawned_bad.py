import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank, args, count):
    number = args.node * count + rank
    dist.init_process_group(
        "nccl", init_method=args.url, rank=number, world_size=args.nodes * count
    )
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    path, done = os.path.join(args.folder, "last.pt"), 0
    if os.path.exists(path):  # <- DDP513
        kept = torch.load(path, map_location="cpu")
        model.module.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        done = kept["done"]
    for step in range(done, 100):
        optimizer.zero_grad()
        model(torch.randn(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 10 == 9:
            kept = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "done": step + 1}, path + ".part")
            os.replace(path + ".part", path)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--folder", default="out")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node", type=int, default=0)
    args = parser.parse_args()
    mp.spawn(train, args=(args, torch.cuda.device_count()), nprocs=torch.cuda.device_count())
