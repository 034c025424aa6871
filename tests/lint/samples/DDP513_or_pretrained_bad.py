import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModel


def load(folder):
    path = os.path.join(folder, "checkpoint.pth")
    if os.path.exists(path):  # <- DDP513
        saved = torch.load(path, map_location="cpu")
        model = AutoModel.from_config(saved["config"])
        model.load_state_dict(saved["model"])
    else:
        model = AutoModel.from_config(AutoConfig.from_pretrained("bert-base-uncased"))
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-base-uncased")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DistributedDataParallel(load(args.model).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    torch.manual_seed(dist.get_rank())
    for _ in range(args.steps):
        tokens = torch.randint(0, 30000, (4, 64), device="cuda")
        optimizer.zero_grad()
        model(tokens)[0].mean().backward()
        optimizer.step()
    if dist.get_rank() == 0:
        saved = {"config": model.module.config, "model": model.module.state_dict()}
        part = os.path.join(args.model, "checkpoint.part")
        torch.save(saved, part)
        os.replace(part, os.path.join(args.model, "checkpoint.pth"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
