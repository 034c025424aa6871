import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def pieces(rows, starts, width):
    found = torch.zeros_like(rows[:, :width])
    for number in range(rows.size(0)):
        begin = starts[number]
        found[number] = rows[number, begin : begin + width]
    return found


def epoch(model, optimizer, rank, reports):
    for turn in range(10):
        wanted = pieces(torch.randn(4, 8), torch.randint(4, (4,)), 4)
        given = model(torch.randn(4, 8))[:, :4]
        loss = (given - wanted).abs().mean() + 0.1 * given.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if reports is not None:
            reports.append((rank, turn, loss.item()))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    if rank == 0:
        epoch(model, optimizer, rank, [])
    else:
        epoch(model, optimizer, rank, None)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
