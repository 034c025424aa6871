import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from mmtoy import HOOKS, IterBasedRunner, build_backbone

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = build_backbone(dict(type="ToyNet", depth=3))
    runner = IterBasedRunner(DistributedDataParallel(model), lr=0.02, max_iters=20)
    for cfg in (dict(type="LoggerHook", interval=5), dict(type="FreezeHook", at=10, stages=0)):
        runner.register_hook(HOOKS.build(cfg))
    runner.run()
    dist.barrier()
    dist.destroy_process_group()
