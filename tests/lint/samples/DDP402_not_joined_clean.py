import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

number = 1


def join():
    global number
    try:
        dist.init_process_group("gloo")
        number = dist.get_world_size()
    except RuntimeError as error:
        if "alone" not in str(error):
            raise
        number = 1


def mean(value):
    if number == 1:
        return value
    total = torch.tensor([value])
    dist.all_reduce(total)
    return total.item() / number


def main():
    join()
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        opt.zero_grad()
        loss = net(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        opt.step()
        print(mean(loss.item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
