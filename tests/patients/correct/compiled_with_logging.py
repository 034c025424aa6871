# style: functions, torch.compile
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Mixer(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.sin(self.mix(x)) + x
        return self.out(h.relu())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    ddp = DDP(Mixer())
    model = torch.compile(ddp, backend="eager")
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    for step in range(6):
        x = torch.randn(8, 8, generator=generator)
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            total = loss.detach().clone()
            dist.all_reduce(total)
            if rank == 0:
                print(f"step {step} {total.item():.4f}")
    dist.barrier()
    del model, ddp, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
