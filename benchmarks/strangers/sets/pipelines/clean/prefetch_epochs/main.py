import torch
import torch.distributed as dist

from imagetoy.data import create_loader
from imagetoy.hooks import EpochSeedHook, OrderRecorder
from imagetoy.loop import Loop

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    loop = Loop(create_loader(n=64, batch_size=8), [EpochSeedHook(), OrderRecorder()])
    loop.run(epochs=3)
    dist.barrier()
    dist.destroy_process_group()
