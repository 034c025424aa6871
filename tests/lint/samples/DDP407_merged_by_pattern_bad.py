import argparse
import glob
import json
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def merge(pattern, output):
    with open(output, "w") as out:
        for name in sorted(glob.glob(pattern)):
            with open(name) as file:  # <-- DDP407
                for item in json.load(file):
                    out.write(json.dumps(item) + "\n")


def main(args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    images = torch.load(args.images, weights_only=False)
    sampler = DistributedSampler(images, shuffle=False)
    encoder = torch.load(args.encoder, weights_only=False, map_location="cuda").eval()
    codes = []
    with torch.no_grad():
        for image in DataLoader(images, batch_size=64, sampler=sampler):
            codes += encoder(image.cuda()).tolist()
    path = f"{args.folder}/codes_{rank}"
    path = path + ".json"
    with open(path, "w") as file:
        json.dump(codes, file)
    torch.cuda.synchronize()
    if rank == 0:
        merge(f"{args.folder}/codes_*.json", f"{args.folder}/codes.jsonl")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--images")
    parser.add_argument("--encoder")
    parser.add_argument("--folder")
    main(parser.parse_args())
