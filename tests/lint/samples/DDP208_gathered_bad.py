import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __len__(self):
        return 1003

    def __getitem__(self, number):
        return torch.full((8,), float(number)), number % 10


def score(accelerator, net, loader):
    right = seen = 0
    net.eval()
    for image, digit in loader:
        with torch.no_grad():
            guess = net(image).argmax(dim=1)
        guess, digit = accelerator.gather((guess, digit))  # <-- DDP208
        right += (guess == digit).sum().item()
        seen += len(digit)
    return right / seen


def main():
    accelerator = Accelerator()
    net, loader = accelerator.prepare(torch.nn.Linear(8, 10), DataLoader(Digits(), 64))
    accelerator.print(str(score(accelerator, net, loader))[:6])


main()
