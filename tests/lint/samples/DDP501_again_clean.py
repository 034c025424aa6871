import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def best():
    while True:
        try:
            state = torch.load("best.pt")
        except (EOFError, OSError):
            continue
        else:
            return state


def main():
    dist.init_process_group("gloo")
    net = DDP(torch.nn.Linear(3, 1))
    for _ in range(3):
        net(torch.randn(4, 3)).mean().backward()
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), "best.pt")
    net.module.load_state_dict(best())


if __name__ == "__main__":
    main()
