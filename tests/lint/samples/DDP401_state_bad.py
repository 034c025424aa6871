"""The first rank, as accelerate's state knows it, waits for the others to write."""

from accelerate import Accelerator


def main():
    accelerator = Accelerator()
    if accelerator.state.is_main_process:
        accelerator.wait_for_everyone()  # <-- DDP401
        print("everyone is here")


if __name__ == "__main__":
    main()
