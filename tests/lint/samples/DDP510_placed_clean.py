import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader


def main(data, path="best.pt"):
    hf = Accelerator(cpu=True)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    net, optimizer, batches = hf.prepare(net, optimizer, DataLoader(data, 8))
    for batch in batches:
        optimizer.zero_grad()
        hf.backward(net(batch).square().mean())
        optimizer.step()
    hf.wait_for_everyone()
    if hf.is_main_process:
        torch.save(hf.unwrap_model(net).state_dict(), path)
    hf.wait_for_everyone()
    hf.unwrap_model(net).load_state_dict(torch.load(path))


if __name__ == "__main__":
    main([torch.ones(4)] * 96)
