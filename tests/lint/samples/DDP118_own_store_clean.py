"""A port of its own where torchrun is told to leave the store to rank 0."""

import os

import torch.distributed as dist

if __name__ == "__main__":
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
    os.environ["MASTER_PORT"] = "23456"  # <- DDP104
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]))
    dist.destroy_process_group()
