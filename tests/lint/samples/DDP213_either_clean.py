import glob
from pathlib import Path

import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Files(Dataset):
    def __init__(self, folder):
        found = glob.glob(str(folder / "*")) if folder.is_dir() else [folder]

        found.sort()
        self.files = found

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return open(self.files[i]).read()


def main(folder):
    dist.init_process_group("gloo")
    data = Files(folder)
    for x in DataLoader(data, sampler=DistributedSampler(data)):
        pass


if __name__ == "__main__":
    main(Path("data"))
