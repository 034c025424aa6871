import torch
from ranks import rank, wrapped


def main():
    """One process, by what the training uses."""
    model = wrapped(torch.nn.Linear(4, 1)).eval()
    with torch.no_grad():
        found = model(torch.rand(8, 4)).mean()
    if rank() == 0:
        print(found)


if __name__ == "__main__":
    main()
