import config
import engine
import torch
import torch.distributed as dist


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    torch.manual_seed(config.SEED)
    engine.Engine(dist.get_rank(), dist.get_world_size()).run()
    dist.destroy_process_group()
