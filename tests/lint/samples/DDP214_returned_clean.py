import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list


def main():
    accelerator = Accelerator(cpu=True)
    made = tempfile.mkdtemp() if accelerator.is_main_process else None
    folder = broadcast_object_list([made])[0]
    net = accelerator.prepare(torch.nn.Linear(2, 2))
    if accelerator.is_main_process:
        accelerator.save(accelerator.unwrap_model(net).state_dict(), f"{folder}/net.pt")
    print(made, folder)


if __name__ == "__main__":
    main()
