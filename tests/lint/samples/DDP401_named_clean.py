import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def latest(folder):
    rank = dist.get_rank()
    found = [each for each in os.listdir(folder) if each.endswith("pth.rank0")]
    if len(found) > 0:
        newest = max((os.path.join(folder, each) for each in found), key=os.path.getmtime)
        return newest.replace("pth.rank0", f"pth.rank{rank}")
    return None


def validate(model):
    total = model(torch.rand(2, 2)).sum()
    dist.all_reduce(total)
    return total


def main(args):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    bare = torch.nn.Linear(2, 2).cuda(local_rank)
    model = DDP(bare, device_ids=[local_rank])
    if args.auto:
        found = latest(args.folder)
        if found:
            args.resume = found
    if args.resume:
        bare.load_state_dict(torch.load(args.resume, map_location="cpu"))
        dist.barrier()
        if args.eval:
            print(validate(model))
            return
    model(torch.rand(2, 2)).sum().backward()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    parser.add_argument("--resume")
    parser.add_argument("--auto", action="store_true")
    parser.add_argument("--eval", action="store_true")
    main(parser.parse_args())
