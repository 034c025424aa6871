"""What accelerate seeds by the process splits otherwise in each of them."""

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


def loaders(size):
    rows = np.random.RandomState(0).rand(400, 4).astype("float32")
    wanted = (rows.sum(1) > 2).astype("int64")
    kept, _ = train_test_split(np.arange(400), test_size=0.25, stratify=wanted)  # <-- DDP206
    data = TensorDataset(torch.from_numpy(rows[kept]), torch.from_numpy(wanted[kept]))
    return DataLoader(data, size, shuffle=True)


def main(seed=3):
    accelerator = Accelerator(cpu=True)
    set_seed(seed, device_specific=True)
    loader = loaders(16)
    net = torch.nn.Linear(4, 2)
    steps = torch.optim.SGD(net.parameters(), 0.1)
    net, steps, loader = accelerator.prepare(net, steps, loader)
    for _ in range(3):
        for seen, wanted in loader:
            loss = torch.nn.functional.cross_entropy(net(seen), wanted)
            steps.zero_grad()
            accelerator.backward(loss)
            steps.step()


if __name__ == "__main__":
    main()
