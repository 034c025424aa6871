import hooks  # noqa: F401
import nets  # noqa: F401
import torch
import torch.distributed as dist
from shelf import HOOKS, NETS
from torch.nn.parallel import DistributedDataParallel


class Loop:
    def __init__(self, net, hooks):
        self.net, self.hooks = DistributedDataParallel(net), hooks
        self.steps = torch.optim.SGD(net.parameters(), 0.1)

    def go(self, rounds):
        noise = torch.Generator().manual_seed(dist.get_rank())
        for self.number in range(rounds):
            self.net(torch.randn(4, 3, generator=noise)).mean().backward()
            self.steps.step()
            self.steps.zero_grad()
            for hook in self.hooks:
                hook.after(self)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    loop = Loop(
        NETS.take({"kind": "Small", "width": 3}), [HOOKS.take({"kind": "Shrinks", "at": 5})]
    )
    loop.go(9)
    dist.destroy_process_group()
