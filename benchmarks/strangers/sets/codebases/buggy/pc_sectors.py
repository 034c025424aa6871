"""Point-cloud boxes from a registry of modules, trained and then evaluated on all processes (OpenPCDet layout)."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from pc_sectors_lib import common_utils
from pc_sectors_lib.dataset import SectorDataset
from pc_sectors_lib.detector import build_network
from pc_sectors_lib.eval_utils import eval_one_epoch

CFG = """
DATA: {FRAMES: 96, VAL_FRAMES: 61, POINTS: 900}
MODEL:
  VFE: {NAME: PillarVFE, NUM_FILTERS: 24}
  BACKBONE_2D: {NAME: BaseBEVBackbone, NUM_FILTERS: 24}
  DENSE_HEAD: {NAME: CenterHead, LOSS_WEIGHTS: {hm: 1.0, reg: 2.0}}
OPTIMIZATION: {NUM_EPOCHS: 3, LR: 0.003, GRAD_NORM_CLIP: 10}
"""


def train_one_epoch(model, optimizer, loader, cfg):
    model.train()
    total = 0.0
    for batch in loader:
        loss, tb_dict = model(batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg["GRAD_NORM_CLIP"])
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--output_dir", default=os.path.join(tempfile.gettempdir(), "pc_sectors"))
    args = parser.parse_args()
    cfg = yaml.safe_load(CFG)
    rank, world = common_utils.init_dist_pytorch()
    output_dir = common_utils.shared_string(f"{args.output_dir}_{os.getpid()}")
    common_utils.set_random_seed(666 + rank)
    train_set = SectorDataset(cfg["DATA"]["FRAMES"], cfg["DATA"]["POINTS"], seed=0)
    test_set = SectorDataset(cfg["DATA"]["VAL_FRAMES"], cfg["DATA"]["POINTS"], seed=1)
    train_sampler = DistributedSampler(train_set)
    test_sampler = DistributedSampler(test_set, shuffle=False)
    loaders = [DataLoader(s, args.batch_size, sampler=t, collate_fn=s.collate_batch)
               for s, t in ((train_set, train_sampler), (test_set, test_sampler))]
    model = nn.parallel.DistributedDataParallel(build_network(cfg["MODEL"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["OPTIMIZATION"]["LR"])
    for epoch in range(cfg["OPTIMIZATION"]["NUM_EPOCHS"]):
        train_sampler.set_epoch(epoch)
        loss = train_one_epoch(model, optimizer, loaders[0], cfg["OPTIMIZATION"])
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f}", flush=True)
        result = eval_one_epoch(model.module, loaders[1], test_set, os.path.join(output_dir, f"eval_{epoch}"))
        if rank == 0:
            print(f"frames {result['frames']} recall@1m {result['recall']:.3f}", flush=True)
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
