import torch.distributed as dist

from robust.runner import Runner

if __name__ == "__main__":
    dist.init_process_group("gloo")
    Runner().run(steps=24)
    dist.barrier()
    dist.destroy_process_group()
