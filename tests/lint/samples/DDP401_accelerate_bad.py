from accelerate import Accelerator


def main(values):
    accelerator = Accelerator()
    if accelerator.is_main_process:
        print(accelerator.gather(values))  # <-- DDP401
        accelerator.wait_for_everyone()  # <-- DDP401
