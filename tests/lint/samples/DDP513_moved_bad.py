import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Runner:
    def __init__(self, net, rate):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=rate)
        self.first = torch.optim.Adam(net.parameters(), lr=0.1 * rate)

    def to(self, device):
        self.net.to(device)
        self.optimizer.load_state_dict(self.first.state_dict())

    def step(self, batch):
        loss = self.net(batch).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def main():
    dist.init_process_group("gloo")
    runner = Runner(DDP(torch.nn.Linear(3, 3)), 0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for number in range(4):
        runner.step(torch.randn(4, 3, generator=noise))
        if dist.get_rank() == 0 and number == 2:
            runner.to("cpu")  # <-- DDP513


if __name__ == "__main__":
    main()
