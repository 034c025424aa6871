import os
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Env:
    rank: int
    world: int

    @classmethod
    def start(cls):
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))

    @property
    def is_main(self):
        return self.rank == 0

    def say(self, text):
        if self.is_main:
            print(text, flush=True)

    def stop(self):
        dist.barrier()
        dist.destroy_process_group()
