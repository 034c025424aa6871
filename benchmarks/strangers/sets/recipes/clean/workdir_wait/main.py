"""python -m torch.distributed.run main.py"""
import torch.distributed as dist

from recsys.experiment import Experiment

if __name__ == "__main__":
    dist.init_process_group("gloo")
    Experiment(name="toy").run()
    dist.destroy_process_group()
