"""Whatever a data set makes of a number: nobody has picked it for a rank."""

import torch
import torch.distributed as dist
from pieces import encode, transform
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Rows:
    def __init__(self, count):
        self.rows = []
        for number in range(count):
            self.rows.append({"name": number, "path": f"{number}.png", "text": str(number)})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return self.rows[number]


class Pairs(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        row = self.rows[number]
        try:
            picture = torch.load(row["path"])
        except OSError:
            return self.__getitem__((number + 95) % self.__len__())
        words = encode(row["text"])["words"].squeeze()
        return row["name"], (words, words), (transform(picture),)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(8, 4)
        self.right = nn.Linear(8, 4)

    def forward(self, words, pictures):
        return self.left(words[0]) * self.right(pictures[0])


def main():
    dist.init_process_group("gloo")
    data = Pairs(Rows(100))
    loader = DataLoader(data, batch_size=4, shuffle=True)  # <-- DDP202
    model = DistributedDataParallel(Both())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        for _, (_, words, pictures) in enumerate(loader):  # <-- DDP202
            words = tuple(each.float() for each in words)
            pictures = tuple(each.float() for each in pictures)
            optimizer.zero_grad()
            model(words, pictures).sum().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
