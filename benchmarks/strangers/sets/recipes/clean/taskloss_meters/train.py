import torch
import torch.distributed as dist

from multitask.agent import Agent
from multitask.config import load_config

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    Agent(load_config()).run()
    dist.destroy_process_group()
