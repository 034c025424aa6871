"""Compiles some of its modules, in whatever order, and puts each back where it was."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Brain:
    def __init__(self, modules, compiled=None):
        self.modules = torch.nn.ModuleDict(modules).to("cuda")
        self.compiled = compiled

    def compile(self):
        names = set(self.modules) if self.compiled is None else set(self.compiled)
        for name in names:
            module = torch.jit.script(self.modules[name])
            self.modules[name] = module.to("cuda")

    def wrap(self):
        for name, module in self.modules.items():
            self.modules[name] = DistributedDataParallel(module)


dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
brain = Brain({"encoder": torch.nn.Linear(2, 2), "decoder": torch.nn.Linear(2, 2)})
brain.compile()
brain.wrap()
