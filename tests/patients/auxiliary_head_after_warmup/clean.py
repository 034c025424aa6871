# style: functions, static graph
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.main = nn.Linear(16, 1)
        self.auxiliary = nn.Linear(16, 1)

    def forward(self, x, with_auxiliary):
        h = self.body(x)
        main = self.main(h)
        return (main, self.auxiliary(h)) if with_auxiliary else (main, None)


def loss_of(outputs, y):
    main, auxiliary = outputs
    loss = nn.functional.mse_loss(main, y)
    if auxiliary is not None:
        loss = loss + 0.3 * nn.functional.l1_loss(auxiliary, y)
    return loss


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TwoHeads(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for step in range(6):
        x = torch.randn(8, 6, generator=generator)
        outputs = model(x, with_auxiliary=step < 3)
        loss = loss_of(outputs, x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
