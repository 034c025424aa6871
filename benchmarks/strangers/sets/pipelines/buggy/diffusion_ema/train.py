import torch
import torch.distributed as dist

from ddpm.ema import EMA
from ddpm.model import Denoiser
from ddpm.trainer import Trainer

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = Denoiser()
    Trainer(net, ema=EMA(net, beta=0.9, update_every=2), steps=120, lr=5e-3).train()
    dist.barrier()
    dist.destroy_process_group()
