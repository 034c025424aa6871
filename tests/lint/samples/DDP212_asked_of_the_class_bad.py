"""A table of judges that whoever comes first draws up, and the others find."""

from pathlib import Path

import torch
import torch.distributed as dist


class Opinions(torch.utils.data.Dataset):
    def __init__(self, rows, place):
        self.rows = rows
        if Path.is_file(place):  # <-- DDP212
            self.judges = torch.load(place)
        else:
            self.draw_up(place)

    def draw_up(self, place):
        self.judges = {}
        for row in self.rows:
            self.judges[row["judge"]] = len(self.judges)
        torch.save(self.judges, place)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return self.rows[number]["heard"], self.judges[self.rows[number]["judge"]]


def main(rows, folder):
    dist.init_process_group("gloo")
    table = Path(folder) / "judges.pt"
    parts = [Opinions(rows[:100], table), Opinions(rows[100:], table)]
    print(len(parts[0]), len(parts[1]))


main(torch.load("rows.pt"), "run")
