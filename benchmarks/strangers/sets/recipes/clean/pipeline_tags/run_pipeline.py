import torch.distributed as dist

from pipe.stages import make_stage
from pipe.schedule import run_schedule

if __name__ == "__main__":
    dist.init_process_group("gloo")
    run_schedule(make_stage(dist.get_rank(), dist.get_world_size()), microbatches=6, epochs=3)
    dist.barrier()
    dist.destroy_process_group()
