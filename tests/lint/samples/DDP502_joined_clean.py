import torch
import torch.distributed as dist


def mean(value):
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(value)
        value /= dist.get_world_size()
    return value


def main():
    scores = mean(torch.rand(8))
    torch.save(scores, "scores.pt")


if __name__ == "__main__":
    main()
