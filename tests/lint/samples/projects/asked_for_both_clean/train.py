import torch
import torch.distributed as dist
from ranks import rank, wrapped


def main():
    dist.init_process_group("gloo")
    model = wrapped(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4)).mean().backward()
        optimizer.step()
    if rank() == 0:
        print("trained")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
