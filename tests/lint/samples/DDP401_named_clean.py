import argparse
import os

import torch
import torch.distributed as dist


def latest(folder):
    rank = dist.get_rank()
    found = [each for each in os.listdir(folder) if each.endswith("pth.rank0")]
    if len(found) > 0:
        newest = max((os.path.join(folder, each) for each in found), key=os.path.getmtime)
        return newest.replace("pth.rank0", f"pth.rank{rank}")
    return None


def main(args):
    dist.init_process_group("nccl")
    if args.auto:
        found = latest(args.folder)
        if found:
            args.resume = found
    if args.resume:
        print(torch.load(args.resume, map_location="cpu").keys())
        dist.barrier()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    parser.add_argument("--resume")
    parser.add_argument("--auto", action="store_true")
    main(parser.parse_args())
