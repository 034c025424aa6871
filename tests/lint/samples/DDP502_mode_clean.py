import argparse, torch, torch.distributed as dist


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--parallel", type=int, default=0)
    p.add_argument("--epochs", type=int, default=3)
    args = p.parse_args()
    parallel = bool(args.parallel)
    if parallel == True:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
    net = torch.nn.Linear(2, 2)
    if parallel == True:
        net = torch.nn.parallel.DistributedDataParallel(net)
    for epoch in range(args.epochs):
        net(torch.ones(1, 2)).sum().backward()
        if parallel == True:
            if rank == 0:
                torch.save(net.state_dict(), f"model{epoch}.pth")
        else:
            torch.save(net.state_dict(), f"model{epoch}.pth")


main()
