import argparse
import os
import pickle

import torch
import torch.distributed as dist
import torch.nn as nn


def join(params):
    if hasattr(params, "launched") and params.launched:
        dist.init_process_group("gloo")


def main(args):
    model = nn.Linear(4, 4)
    found = model(torch.ones(args.shard + 1, 4)).tolist()
    with open(os.path.join(args.folder, f"part_{args.shard:02d}"), mode="wb") as f:  # <- DDP502
        pickle.dump(found, f)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=str, default="out")
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--launched", action="store_true")
    args = parser.parse_args()
    join(args)
    main(args)
